//! Liveness analysis of registers and stack.

use paceline_isa::{Callee, Code, Insn, Reg, RegSet};
use paceline_spec::helper::Helper;

use crate::links::Links;
use crate::source::Source;
use crate::stack::{Cells, StackReads};

/// Live registers and stack cells before each instruction.
pub(crate) struct Liveness {
    registers: Backward<RegSet>,
    /// `None` if the analysis does not pay.
    stack: Option<Backward<Cells>>,
}

impl Liveness {
    pub(crate) fn of(source: &Source<'_>, links: &Links) -> Self {
        let step = |slot, insn: &Insn, after: RegSet| {
            let fact = source.fact(slot);
            // A decided jump has no comparison.
            let decided = matches!(insn, Insn::JumpIf { .. }) && fact.may_jump != fact.may_fall_through;
            let read = if decided { RegSet::EMPTY } else { reads(insn) };
            after.minus(writes(insn)).union(read)
        };
        let stack = StackReads::of(source, links)
            .map(|reads| Backward::of(source, |slot, insn, after| reads.step(slot, insn, after)));
        Self { registers: Backward::of(source, step), stack }
    }

    /// Live registers before an instruction.
    pub(crate) fn before(&self, slot: usize) -> RegSet {
        self.registers.before(slot)
    }

    /// Live registers at a jump's target.
    pub(crate) fn at_target(&self, slot: usize, insn: &Insn) -> RegSet {
        self.registers.at_target(slot, insn)
    }

    /// Live registers after an instruction, over all its successors.
    pub(crate) fn after(&self, source: &Source<'_>, slot: usize, insn: &Insn) -> RegSet {
        self.registers.after(source, slot, insn)
    }

    /// Live stack cells before an instruction; `None` for unknown, possibly all.
    pub(crate) fn stack_before(&self, slot: usize) -> Option<Cells> {
        Some(self.stack.as_ref()?.before(slot))
    }

    /// Live stack cells after an instruction; `None` for unknown, possibly all.
    pub(crate) fn stack_after(&self, source: &Source<'_>, slot: usize, insn: &Insn) -> Option<Cells> {
        Some(self.stack.as_ref()?.after(source, slot, insn))
    }
}

/// A set of storage locations that may be live. Its default is the empty set.
pub(crate) trait Live: Copy + Default + PartialEq {
    /// All locations: the answer for slots outside of the program.
    const ALL: Self;

    /// Union of two sets.
    fn union(self, other: Self) -> Self;
}

impl Live for RegSet {
    const ALL: Self = Self::ALL;

    fn union(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A backward dataflow analysis: the live set before each slot.
struct Backward<S> {
    before: Vec<S>,
}

impl<S: Live> Backward<S> {
    /// `step` is the transfer function: the set before an instruction from the set after it.
    fn of(source: &Source<'_>, step: impl Fn(usize, &Insn, S) -> S) -> Self {
        let mut live = Self { before: vec![S::default(); source.code.len()] };
        let reached: Vec<(usize, &Insn)> = source.functions.iter().flat_map(|f| source.reached(f)).collect();
        // In reverse order one pass converges, except for loops.
        let mut back_edges = false;
        for &(slot, insn) in reached.iter().rev() {
            live.update(source, &step, slot, insn);
            back_edges |= insn.jump_target(slot).is_some_and(|target| target <= slot as i64);
        }
        if back_edges {
            live.settle(source, &step, &reached);
        }
        live
    }

    /// Propagates changes backward to a fixed point. A set only grows, so an instruction changes at most as often as a set has
    /// elements.
    fn settle(
        &mut self,
        source: &Source<'_>,
        step: &impl Fn(usize, &Insn, S) -> S,
        reached: &[(usize, &Insn)],
    ) {
        let mut jumps: Vec<(usize, usize)> = reached
            .iter()
            .filter_map(|&(slot, insn)| Some((usize::try_from(insn.jump_target(slot)?).ok()?, slot)))
            .collect();
        jumps.sort_unstable();
        let mut work: Vec<usize> =
            jumps.iter().filter(|(target, from)| target <= from).map(|&(_, from)| from).collect();
        while let Some(slot) = work.pop() {
            let Some(insn) = source.code.get(slot) else { continue };
            if self.update(source, step, slot, insn) {
                work.extend(previous(source.code, slot));
                let first = jumps.partition_point(|&(target, _)| target < slot);
                let here = jumps[first..].iter().take_while(|&&(target, _)| target == slot);
                work.extend(here.map(|&(_, from)| from));
            }
        }
    }

    fn update(
        &mut self,
        source: &Source<'_>,
        step: &impl Fn(usize, &Insn, S) -> S,
        slot: usize,
        insn: &Insn,
    ) -> bool {
        let live = step(slot, insn, self.after(source, slot, insn));
        match self.before.get_mut(slot) {
            Some(place) if *place != live => {
                *place = live;
                true
            }
            _ => false,
        }
    }

    fn before(&self, slot: usize) -> S {
        self.before.get(slot).copied().unwrap_or(S::ALL)
    }

    fn at_target(&self, slot: usize, insn: &Insn) -> S {
        let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
        target.map_or(S::ALL, |target| self.before(target))
    }

    fn after(&self, source: &Source<'_>, slot: usize, insn: &Insn) -> S {
        let fact = source.fact(slot);
        let conditional = insn.falls_through() && insn.jump_target(slot).is_some();
        let (falls, jumps) = if conditional {
            (fact.may_fall_through, fact.may_jump)
        } else {
            (insn.falls_through(), insn.jump_target(slot).is_some())
        };
        let next = if falls { self.before(slot + insn.slots()) } else { S::default() };
        if jumps { next.union(self.at_target(slot, insn)) } else { next }
    }
}
/// Slot of the previous instruction.
fn previous(code: &Code, slot: usize) -> Option<usize> {
    let before = slot.checked_sub(1)?;
    if code.get(before).is_some() { Some(before) } else { before.checked_sub(1) }
}

/// Registers that an instruction reads; for a helper call, as many argument registers as the helper has.
pub(crate) fn reads(insn: &Insn) -> RegSet {
    match insn {
        Insn::Call(Callee::Helper(id)) => {
            let helper = Helper::from_imm(*id);
            let count = helper.and_then(|h| h.prototype).map_or(5, |prototype| prototype.args.len());
            Reg::ALL.into_iter().skip(1).take(count).collect()
        }
        _ => insn.reads(),
    }
}

/// Registers that an instruction certainly writes.
fn writes(insn: &Insn) -> RegSet {
    insn.writes()
}
