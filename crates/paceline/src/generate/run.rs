//! Runs of inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use paceline_analysis::symbolic::{Edge, Element, Input, Side};
use paceline_engine::{Fault, Host, Observed, Outcome, Program, RanAs, TimeSource};
use paceline_frame::{Burst, FrameMeta};
use paceline_isa::{Condition, Insn, Operand, Reg, Width, eval};
use paceline_maps::Map;
use paceline_spec::{Errno, ProgramKind};

use super::found::Missed;
use super::network;
use crate::load::Collection;
use crate::load::Object;

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
    map.insert(&element.key, &value)
}

/// A run of an input.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What became of the packet.
    pub outcome: Outcome,
    /// The sides of the program's own branches that it took.
    pub sides: BTreeSet<Side>,
}

/// Runs an input on the plain interpreter.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run(program: &Program, input: &Input) -> Result<Ran, Missed> {
    run_in(program, &mut host(input), input)
}

/// The same in a host that may have run other packets before.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run_in(program: &Program, host: &mut Host, input: &Input) -> Result<Ran, Missed> {
    let mut sides = BTreeSet::new();
    let outcome = observed(program, host, input, |seen| sides.extend(side(seen)))?;
    Ok(Ran { outcome, sides })
}

/// Runs an input, and shows the machine before each instruction of the program itself.
pub(super) fn observed(
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
    Ok(outcome(&burst, host, program.spec().kind))
}

/// The host in which an input runs: its time, its network, and its seed or that of tests.
#[must_use]
pub fn host(input: &Input) -> Host {
    let mut host = Host::default();
    host.seed(input.seed.unwrap_or(1));
    host.set_time(TimeSource::Packets);
    host.set_trace(std::io::sink());
    if let Some(network) = input.route.as_ref().and_then(network) {
        host.set_network(Arc::new(network));
    }
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

/// What became of the packet of a burst of one, which a program of a type ran over.
#[must_use]
pub fn outcome(burst: &Burst, host: &Host, kind: ProgramKind) -> Outcome {
    Outcome::of(burst.frame(0), host, RanAs::Program(kind.rules().meaning), None)
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
pub(super) fn side(observed: &Observed<'_>) -> Option<Side> {
    let (width, condition, left, right) = comparison(observed)?;
    Some(Side { slot: observed.slot, taken: eval::compare(width, condition, left, right) })
}

/// The edges that a conditional jump is at.
pub(super) fn edges(observed: &Observed<'_>) -> impl Iterator<Item = (usize, Edge)> {
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
