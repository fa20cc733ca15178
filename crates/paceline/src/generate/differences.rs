//! Inputs on which two versions of a program differ.

use std::collections::BTreeMap;
use std::time::Instant;

use paceline_analysis::symbolic::{Bounds, Goals, Input, Options, Place, Progress, compare};
use paceline_engine::Host;
use paceline_isa::{Imm64, Insn, RawInsn, decode_at, encode};
use paceline_spec::{MapSpec, ProgramSpec};

use super::confirm::Confirmer;
use super::found::{Confirmed, GenerateError, Missed};
use super::goals::generate_watched;
use super::left::{Changes, Event, Handover};
use crate::causes::with_causes;
use crate::load::Object;

/// The reason why two programs cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// One of them cannot be explored.
    #[error("{}", with_causes(.error))]
    Program {
        /// Whether it is the new one.
        is_new: bool,
        /// Cause.
        error: GenerateError,
    },
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
    /// Whether paths were compared: they are not if inputs that are generated for one program tell both apart.
    pub is_of_paths: bool,
    /// Pairs of paths that were compared.
    pub pairs: u64,
    /// Paths that were followed.
    pub paths: u64,
    /// What this holds for.
    pub bounds: Bounds,
}

impl Differences {
    /// Whether there are no others, within the bounds of the options.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_of_paths && self.left.is_empty() && self.unconfirmed.is_empty() && !self.is_cut
    }
}

/// Looks for inputs on which two programs differ in verdict, packet, metadata, redirect target, maps, events, traces or
/// tail calls, up to `most`, and runs each on both. Most pairs are compared path by path in a moment; for others the inputs that are
/// generated for either are run on both, and only if they tell nothing apart, paths are compared for the rest of the time.
///
/// # Errors
/// [`CompareError`].
pub fn differences(
    old: (&Object, &ProgramSpec),
    new: (&Object, &ProgramSpec),
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Differences, CompareError> {
    let start = Instant::now();
    let pair = Pair::new(old, new)?;
    let soon = Options { time: options.time / SOON, ..*options };
    let first = pair.differences_of_paths(&soon, most, tell)?;
    let is_over = start.elapsed() < soon.time;
    if first.is_complete() || !first.found.is_empty() {
        return Ok(first);
    }
    let found = pair.differences_of_inputs(options, most, tell)?;
    if !found.is_empty() {
        let bounds = Bounds { length: options.length, ..Bounds::default() };
        return Ok(Differences { found, bounds, ..Differences::default() });
    }
    // More time would lead no further.
    if is_over {
        return Ok(first);
    }
    let options = Options { time: options.time.saturating_sub(start.elapsed()), ..*options };
    pair.differences_of_paths(&options, most, tell)
}

/// The same without the inputs that are generated for either.
///
/// # Errors
/// [`CompareError`].
pub fn differences_of_paths(
    old: (&Object, &ProgramSpec),
    new: (&Object, &ProgramSpec),
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Differences, CompareError> {
    Pair::new(old, new)?.differences_of_paths(options, most, tell)
}

/// Part of the time in which paths are compared before inputs are generated.
const SOON: u32 = 4;

/// Part of the time that is spent on generating inputs for each program.
const PART: u32 = 16;

/// Two programs that are compared.
struct Pair<'p> {
    old: (&'p Object, &'p ProgramSpec),
    new: (&'p Object, &'p ProgramSpec),
    joint: Joint,
    sides: (Confirmer<'p>, Confirmer<'p>),
}

fn failed<T>(is_new: bool, result: Result<T, GenerateError>) -> Result<T, CompareError> {
    result.map_err(|error| CompareError::Program { is_new, error })
}

impl<'p> Pair<'p> {
    fn new(
        old: (&'p Object, &'p ProgramSpec),
        new: (&'p Object, &'p ProgramSpec),
    ) -> Result<Self, CompareError> {
        let (a, b) = (old.1.kind.rules().name, new.1.kind.rules().name);
        if a != b {
            return Err(CompareError::Types(a, b));
        }
        let joint = Joint::new(old.0.maps(), new.0.maps())?;
        let sides = (Confirmer::new(old.0, &old.1.name), Confirmer::new(new.0, &new.1.name));
        Ok(Self { old, new, joint, sides })
    }

    /// Runs what is generated for each program on both.
    fn differences_of_inputs(
        &self,
        options: &Options,
        most: usize,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Difference>, CompareError> {
        let options =
            Options { goals: Goals::Sides, boundaries: true, time: options.time / PART, ..*options };
        let mut found = Vec::new();
        for (is_new, (object, program)) in [(false, self.old), (true, self.new)] {
            let generated = failed(is_new, generate_watched(object, program, &options, tell))?;
            for (_, _, confirmed) in generated.inputs() {
                let joint = match is_new {
                    false => confirmed.input.clone(),
                    true => of_maps(&confirmed.input, |map| self.joint.second.get(map).copied()),
                };
                if let Some(Ok(difference)) = self.run(&joint)? {
                    found.push(difference);
                }
                if found.len() >= most {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Runs an input, with the indices of the joint maps, on both; `None` if they do not differ on it, an error if it fails on one.
    fn run(&self, input: &Input) -> Result<Option<Result<Difference, Missed>>, CompareError> {
        let (old_object, new_object) = (self.old.0, self.new.0);
        let of_old = of_maps(input, |map| (map < old_object.maps().len()).then_some(map));
        let of_new = of_maps(input, |map| self.joint.place(map));
        let old = failed(false, self.sides.0.run(&of_old))?;
        let new = failed(true, self.sides.1.run(&of_new))?;
        Ok(match (old, new) {
            (Ok((_, old)), Ok((_, new))) => {
                differ((old_object, &old), (new_object, &new)).then_some(Ok(Difference { old, new }))
            }
            (Err(missed), _) | (_, Err(missed)) => Some(Err(missed)),
        })
    }

    fn differences_of_paths(
        &self,
        options: &Options,
        most: usize,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Differences, CompareError> {
        let mut moved = self.new.0.clone();
        let mut program = self.new.1.clone();
        self.joint.rename(&mut program.insns)?;
        moved.specs_mut().maps.clone_from(&self.joint.maps);
        moved.specs_mut().programs = vec![program.clone()];
        let mut wide = self.old.0.clone();
        wide.specs_mut().maps.clone_from(&self.joint.maps);
        let verify = |object: &Object, program: &ProgramSpec| {
            object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))
        };
        let first = failed(false, verify(&wide, self.old.1))?;
        let second = failed(true, verify(&moved, &program))?;
        let options = Options { random: Host::randoms_of, ..*options };
        let comparison = compare((&first, &second), &self.joint.maps, &options, most, tell);
        let mut differences = Differences {
            is_cut: comparison.differing.len() >= most,
            left: comparison.left,
            is_of_paths: true,
            pairs: comparison.pairs,
            paths: comparison.paths,
            bounds: comparison.bounds,
            ..Differences::default()
        };
        for input in comparison.differing {
            match self.run(&input)? {
                Some(Ok(difference)) => differences.found.push(difference),
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

    /// Index of the second object's map that a joint one is.
    fn place(&self, map: usize) -> Option<usize> {
        self.second.iter().position(|joint| *joint == map)
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
