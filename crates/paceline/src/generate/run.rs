//! Runs of inputs, and what is seen in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_explain::Outcome;
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_isa::{Callee, Condition, Imm64, Insn, Operand, Reg, Width, eval};
use paceline_maps::Map;
use paceline_spec::Errno;
use paceline_spec::helper::{Helper, HelperId};
use paceline_symbolic::{Edge, Element, Input, Meets, Side};
use paceline_vm::{Fault, Host, Observed, Program, TimeSource};

use super::Missed;
use crate::{Collection, Object};

/// Puts the elements of an input into the maps of a collection.
///
/// # Errors
/// [`Missed::Element`]: a map refuses one.
pub fn fill(object: &Object, collection: &Collection, input: &Input) -> Result<(), Missed> {
    for (index, elements) in &input.maps {
        let Some(map) = object.maps().get(*index).and_then(|spec| collection.map(&spec.name)) else {
            continue;
        };
        for element in elements {
            let name = map.spec().name.clone();
            put(map, element).map_err(|errno| Missed::Element { map: name, errno })?;
        }
    }
    Ok(())
}

pub(super) fn put(map: &Arc<Map>, element: &Element) -> Result<(), Errno> {
    let mut value = element.value.clone();
    if map.spec().kind.is_per_cpu() {
        value.resize(map.value_stride(), 0);
        value = value.repeat(map.user_value_size() / value.len().max(1));
    }
    map.update(&element.key, &value, 0)
}

/// Runs an input on the plain interpreter: what came of it, and the sides of the program's own branches that it took.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run(program: &Program, input: &Input) -> Result<(Outcome, BTreeSet<Side>), Missed> {
    run_in(program, &mut host(input), input)
}

/// The same in a host that may have run other packets before.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run_in(
    program: &Program,
    host: &mut Host,
    input: &Input,
) -> Result<(Outcome, BTreeSet<Side>), Missed> {
    let mut sides = BTreeSet::new();
    let outcome = observed(program, host, input, |seen| sides.extend(side(seen)))?;
    Ok((outcome, sides))
}

/// Runs an input, and shows the machine before each instruction of the program itself.
fn observed(
    program: &Program,
    host: &mut Host,
    input: &Input,
    mut observe: impl FnMut(&Observed<'_>),
) -> Result<Outcome, Missed> {
    let mut burst = burst(input)?;
    host.arrive(&burst);
    let mut frame = burst.frame_mut(0);
    let mut own = None;
    let exit = program.run_observed(&mut frame, host, |seen| {
        if *own.get_or_insert(seen.program_id()) == seen.program_id() {
            observe(seen);
        }
    });
    exit.map_err(|fault: Box<Fault>| Missed::Fault(fault.to_string()))?;
    Ok(outcome(&burst))
}

/// An element of a map, by the map's index and the key.
pub(super) type Key = (usize, Vec<u8>);

/// What a run did.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) outcome: Outcome,
    /// The sides that it took, one after the other.
    pub(super) sides: Vec<Side>,
    /// The edges of comparisons that it came to, by slot.
    pub(super) edges: BTreeSet<(usize, Edge)>,
    /// What the map operations met, by slot.
    pub(super) met: BTreeSet<(usize, Meets)>,
    /// Slot of the program's last instruction.
    pub(super) last: usize,
    /// The elements that it asked for, as they were then.
    pub(super) asked: BTreeMap<Key, Option<Vec<u8>>>,
    /// The events that it sent.
    pub(super) events: Vec<(String, Vec<u8>)>,
}

/// Runs an input, and notes all that it does.
pub(super) fn trace(
    object: &Object,
    collection: &Collection,
    program: &Program,
    input: &Input,
) -> Result<Trace, Missed> {
    let mut host = host(input);
    let received = Arc::<Mutex<Vec<(String, Vec<u8>)>>>::default();
    let sink = Arc::clone(&received);
    host.set_events(Box::new(move |event| {
        let event = (event.map.to_owned(), event.data.to_vec());
        sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }));
    let indices = object.maps().iter().enumerate();
    let indices = indices.filter_map(|(index, spec)| Some((collection.map(&spec.name)?.id(), index)));
    let mut watch = Watch { indices: indices.collect(), ..Watch::default() };
    let outcome = observed(program, &mut host, input, |seen| watch.see(seen))?;
    let mut events = std::mem::take(&mut *received.lock().unwrap_or_else(PoisonError::into_inner));
    for map in collection.maps() {
        if let Some(ring) = map.ring_buffer() {
            ring.consume(|data| events.push((map.spec().name.clone(), data.to_vec())));
        }
    }
    let Watch { sides, edges, met, last, asked, .. } = watch;
    Ok(Trace { outcome, sides, edges, met, last, asked, events })
}

/// Notes of a run.
#[derive(Debug, Default)]
struct Watch {
    /// Indices of maps in the object, by the maps' numbers.
    indices: BTreeMap<u32, usize>,
    sides: Vec<Side>,
    edges: BTreeSet<(usize, Edge)>,
    met: BTreeSet<(usize, Meets)>,
    last: usize,
    asked: BTreeMap<Key, Option<Vec<u8>>>,
    /// The map operation that was executed last: its slot and helper, whether there was an element, whether the map has keys.
    called: Option<(usize, HelperId, bool, bool)>,
}

impl Watch {
    fn see(&mut self, seen: &Observed<'_>) {
        self.returned(seen.registers[0]);
        self.last = seen.slot;
        self.sides.extend(side(seen));
        self.edges.extend(edges(seen));
        match seen.insn() {
            Some(&Insn::Call(Callee::Helper(helper))) => {
                if let Some(helper) = Helper::from_imm(helper) {
                    self.call(seen, helper.id);
                }
            }
            Some(&Insn::LoadImm64 { value: Imm64::MapValueIndex { index, .. }, .. }) => {
                if let Some(map) = seen.map_at(index) {
                    self.ask(map, vec![0; 4]);
                }
            }
            _ => {}
        }
    }

    /// Notes a map operation before it is executed.
    fn call(&mut self, seen: &Observed<'_>, helper: HelperId) {
        let register = |reg: Reg| seen.registers[usize::from(reg.number())];
        let key = match helper {
            HelperId::MapLookupElem | HelperId::MapUpdateElem | HelperId::MapDeleteElem => None,
            HelperId::RedirectMap => Some((register(Reg::R2) as u32).to_ne_bytes().to_vec()),
            _ => return,
        };
        let Some(map) = seen.map(register(Reg::R1)) else { return };
        let key = key.or_else(|| seen.read(register(Reg::R2), map.spec().key_size as usize));
        let Some(key) = key else { return };
        let is_there = self.ask(map, key);
        let kind = map.spec().kind;
        self.called = Some((seen.slot, helper, is_there, !kind.has_indices()));
    }

    /// Notes an element that is asked for; whether it is there.
    fn ask(&mut self, map: &Map, key: Vec<u8>) -> bool {
        let value = map.lookup(&key).ok();
        let is_there = value.is_some();
        if let Some(&index) = self.indices.get(&map.id()) {
            self.asked.entry((index, key)).or_insert(value);
        }
        is_there
    }

    /// Notes what the map operation that was executed last met, from its result.
    fn returned(&mut self, result: u64) {
        let Some((slot, helper, is_there, has_keys)) = self.called.take() else { return };
        let found = match helper {
            HelperId::MapLookupElem => result != 0,
            HelperId::RedirectMap => result as u32 == Verdict::Redirect as u32,
            HelperId::MapDeleteElem => result == 0,
            _ => is_there,
        };
        let is_full = helper == HelperId::MapUpdateElem && has_keys && result == Errno::E2BIG.to_return();
        let meets = match (is_full, found) {
            (true, _) => Meets::Full,
            (_, true) => Meets::Found,
            (_, false) => Meets::NotFound,
        };
        self.met.insert((slot, meets));
    }
}

/// The host in which an input runs: its time, and its seed or that of tests.
#[must_use]
pub fn host(input: &Input) -> Host {
    let mut host = Host::default();
    host.seed(input.seed.unwrap_or(1));
    host.set_time(TimeSource::Packets);
    host.set_trace(std::io::sink());
    host
}

/// The packet of an input as a burst of one.
///
/// # Errors
/// [`Missed::TooLong`].
pub fn burst(input: &Input) -> Result<Burst, Missed> {
    let mut burst = Burst::new(1);
    let meta = FrameMeta {
        timestamp_ns: input.time_ns,
        original_len: input.packet.len() as u32,
        ..FrameMeta::default()
    };
    burst.push(&input.packet, meta).map_err(|_| Missed::TooLong)?;
    burst.frame_mut(0).set_ingress(input.ingress, input.queue);
    Ok(burst)
}

/// What became of the packet of a burst of one.
#[must_use]
pub fn outcome(burst: &Burst) -> Outcome {
    let frame = burst.frame(0);
    Outcome {
        verdict: frame.verdict(),
        code: frame.code(),
        redirect: frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect),
        bytes: frame.packet().to_vec(),
        metadata: frame.metadata().to_vec(),
        fault: None,
    }
}

/// A conditional jump: its comparison, and the numbers that it compares.
fn comparison(observed: &Observed<'_>) -> Option<(Width, Condition, u64, u64)> {
    let Some(&Insn::JumpIf { width, condition, dst, src, .. }) = observed.insn() else { return None };
    let value = |reg: Reg| observed.registers[usize::from(reg.number())];
    let right = match src {
        Operand::Reg(reg) => value(reg),
        Operand::Imm(imm) => imm as u64,
    };
    Some((width, condition, value(dst), right))
}

/// The side that a conditional jump takes.
fn side(observed: &Observed<'_>) -> Option<Side> {
    let (width, condition, left, right) = comparison(observed)?;
    Some(Side { slot: observed.slot, taken: eval::compare(width, condition, left, right) })
}

/// The edges that a conditional jump is at.
fn edges(observed: &Observed<'_>) -> impl Iterator<Item = (usize, Edge)> {
    let slot = observed.slot;
    let at = |(width, _, left, right)| {
        let unused = if width == Width::W32 { 32 } else { 0 };
        let (left, right): (u64, u64) = (left << unused, right << unused);
        let one = 1 << unused;
        let is = |edge: &Edge| match edge {
            Edge::Equal => left == right,
            Edge::Above => left == right.wrapping_add(one),
            Edge::Below => left.wrapping_add(one) == right,
            Edge::Signs => (left < right) != (left.cast_signed() < right.cast_signed()),
        };
        [Edge::Equal, Edge::Above, Edge::Below, Edge::Signs].into_iter().filter(is).collect::<Vec<_>>()
    };
    let edges = comparison(observed).map(at).unwrap_or_default();
    edges.into_iter().map(move |edge| (slot, edge))
}
