//! Inputs on which two versions of a program differ.

use std::collections::BTreeMap;

use paceline_isa::{Imm64, Insn, RawInsn, decode_at, encode};
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_symbolic::{Input, Options, Place, Progress, compare};
use paceline_vm::Host;

use super::confirm::Confirmer;
use super::left::{Changes, Event, Handover};
use super::{Confirmed, GenerateError};
use crate::Object;

/// The reason why two programs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of them cannot be explored.
    #[error("{0}")]
    Program(#[from] GenerateError),
    /// They are of different types.
    #[error("the programs are of different types: {0} and {1}")]
    Types(&'static str, &'static str),
    /// A map of one name is another one.
    #[error("map {0} has another kind, size or initial contents")]
    Map(String),
    /// An instruction cannot be changed to name another map.
    #[error("slot {0} names a map in a way that is not supported")]
    Slot(usize),
}

/// An input on which two programs differ, as both fare with it.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The old one.
    pub old: Confirmed,
    /// The new one; its input has the indices of its object's maps.
    pub new: Confirmed,
}

/// What is known of the differences between two programs.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    /// Inputs on which they differ, of different pairs of paths.
    pub found: Vec<Difference>,
    /// Inputs on which they should have differed and did not: faults of this library.
    pub unconfirmed: Vec<Input>,
    /// Places at which paths were given up: of the new program, or of the old one (`false`).
    pub left: Vec<(bool, Place)>,
    /// Whether the search ended because so many inputs were found.
    pub is_cut: bool,
    /// Pairs of paths that were compared.
    pub pairs: u64,
    /// Paths that were followed.
    pub paths: u64,
}

impl Differences {
    /// Whether there are no others, within the bounds of the options.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.unconfirmed.is_empty() && !self.is_cut
    }
}

/// Looks for inputs on which two programs differ in verdict, packet, metadata, redirect target, maps, events, traces or
/// tail calls, up to `most`, and runs each on both.
///
/// # Errors
/// [`CompareError`].
pub fn differences(
    (old_object, old): (&Object, &ProgramSpec),
    (new_object, new): (&Object, &ProgramSpec),
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Differences, CompareError> {
    let (a, b) = (old.kind.rules().name, new.kind.rules().name);
    if a != b {
        return Err(CompareError::Types(a, b));
    }
    let joint = Joint::new(old_object.maps(), new_object.maps())?;
    let mut moved = new_object.clone();
    let mut program = new.clone();
    joint.rename(&mut program.insns)?;
    moved.specs_mut().maps.clone_from(&joint.maps);
    moved.specs_mut().programs = vec![program.clone()];
    let mut wide = old_object.clone();
    wide.specs_mut().maps.clone_from(&joint.maps);
    let verify = |object: &Object, program: &ProgramSpec| {
        object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))
    };
    let (first, second) = (verify(&wide, old)?, verify(&moved, &program)?);
    let options = Options { random: Host::randoms_of, ..*options };
    let comparison = compare((&first, &second), &joint.maps, &options, most, tell);
    let mut differences = Differences {
        is_cut: comparison.differing.len() >= most,
        left: comparison.left,
        pairs: comparison.pairs,
        paths: comparison.paths,
        ..Differences::default()
    };
    let old_side = Confirmer::new(old_object, &old.name);
    let new_side = Confirmer::new(new_object, &new.name);
    let places = joint.places();
    for input in comparison.differing {
        let of_old = of_maps(&input, |map| (map < old_object.maps().len()).then_some(map));
        let of_new = of_maps(&input, |map| places.get(&map).copied());
        let (old, new) = (old_side.run(&of_old)?, new_side.run(&of_new)?);
        match (old, new) {
            (Ok((_, old)), Ok((_, new))) if differ((old_object, &old), (new_object, &new)) => {
                differences.found.push(Difference { old, new });
            }
            // It may have gone a way that is not modelled.
            _ => match input.guess.clone() {
                Some(place) if differences.left.iter().any(|(_, other)| *other == place) => {}
                Some(place) => differences.left.push((true, place)),
                None => differences.unconfirmed.push(input),
            },
        }
    }
    Ok(differences)
}

/// Whether two runs end differently, or begin a tail call differently.
fn differ((old_object, old): (&Object, &Confirmed), (new_object, new): (&Object, &Confirmed)) -> bool {
    let end = |run: &Confirmed| {
        let Confirmed { verdict, returned, bytes, metadata, redirect, .. } = run.clone();
        (verdict, returned, bytes, metadata, redirect, sorted(&run.events), run.traces.clone())
    };
    let other_call = match (&old.handover, &new.handover) {
        (None, None) => false,
        (Some(old), Some(new)) => calls_differ((old_object, old), (new_object, new)),
        _ => true,
    };
    other_call
        || end(old) != end(new)
        || changes(old_object, &old.changes) != changes(new_object, &new.changes)
}

/// Whether two tail calls lead elsewhere, or leave something else for the program that is called.
fn calls_differ((old_object, old): (&Object, &Handover), (new_object, new): (&Object, &Handover)) -> bool {
    let begin = |call: &Handover| {
        let other = (Changes::new(), Vec::new());
        Handover { changes: other.0, events: other.1, ..call.clone() }
    };
    begin(old) != begin(new)
        || changes(old_object, &old.changes) != changes(new_object, &new.changes)
        || sorted(&old.events) != sorted(&new.events)
}

/// Events by map, in the order in which the reader of each gets them.
fn sorted(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    events.sort_by(|a, b| a.map.cmp(&b.map));
    events
}

/// Changed elements, by the maps' names.
fn changes<'a>(object: &'a Object, all: &'a Changes) -> BTreeMap<(&'a str, &'a [u8]), Option<&'a [u8]>> {
    let name = |map: usize| object.maps().get(map).map_or("", |spec| spec.name.as_str());
    all.iter().map(|((map, key), value)| ((name(*map), key.as_slice()), value.as_deref())).collect()
}

/// An input with other indices of maps.
fn of_maps(input: &Input, index: impl Fn(usize) -> Option<usize>) -> Input {
    let mut input = input.clone();
    let maps = std::mem::take(&mut input.maps).into_iter();
    input.maps = maps.filter_map(|(map, elements)| Some((index(map)?, elements))).collect();
    input
}

/// The maps of two objects: those of one name are one.
struct Joint {
    maps: Vec<MapSpec>,
    /// Indices of the second object's maps.
    second: Vec<usize>,
}

impl Joint {
    fn new(first: &[MapSpec], second: &[MapSpec]) -> Result<Self, CompareError> {
        let mut joint = Self { maps: first.to_vec(), second: Vec::new() };
        for map in second {
            let known = first.iter().position(|other| other.name == map.name);
            let index = match known {
                Some(index) if is_same(&first[index], map) => index,
                // What programs can only read is no effect.
                Some(index) if first[index].is_constant() && map.is_constant() => joint.add(map),
                Some(_) => return Err(CompareError::Map(map.name.clone())),
                None => joint.add(map),
            };
            joint.second.push(index);
        }
        Ok(joint)
    }

    fn add(&mut self, map: &MapSpec) -> usize {
        self.maps.push(map.clone());
        self.maps.len() - 1
    }

    /// Indices of the second object's maps by those of the joint ones.
    fn places(&self) -> BTreeMap<usize, usize> {
        self.second.iter().enumerate().map(|(place, joint)| (*joint, place)).collect()
    }

    /// Makes instructions of the second object name the joint maps.
    fn rename(&self, insns: &mut [RawInsn]) -> Result<(), CompareError> {
        let mut slot = 0;
        while slot < insns.len() {
            let insn = decode_at(insns, slot).map_err(|_| CompareError::Slot(slot))?;
            if let Insn::LoadImm64 { dst, value } = insn {
                let renamed = match value {
                    Imm64::MapIndex(index) => Some(Imm64::MapIndex(self.index(index, slot)?)),
                    Imm64::MapValueIndex { index, offset } => {
                        Some(Imm64::MapValueIndex { index: self.index(index, slot)?, offset })
                    }
                    _ => None,
                };
                if let Some(value) = renamed {
                    let code = encode(&Insn::LoadImm64 { dst, value });
                    let code = code.map_err(|_| CompareError::Slot(slot))?;
                    insns[slot..].iter_mut().zip(code.iter()).for_each(|(place, insn)| *place = insn);
                }
            }
            slot += insn.slots();
        }
        Ok(())
    }

    fn index<N: TryFrom<usize> + TryInto<usize>>(&self, index: N, slot: usize) -> Result<N, CompareError> {
        let index: Option<usize> = index.try_into().ok();
        let joint = index.and_then(|index| self.second.get(index).copied());
        joint.and_then(|joint| N::try_from(joint).ok()).ok_or(CompareError::Slot(slot))
    }
}

fn is_same(a: &MapSpec, b: &MapSpec) -> bool {
    let shape = |map: &MapSpec| (map.kind, map.key_size, map.value_size, map.max_entries, map.flags);
    shape(a) == shape(b) && a.frozen == b.frozen && a.contents == b.contents
}
