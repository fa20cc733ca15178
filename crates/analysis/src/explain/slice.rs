//! The backward slice of a run from the value that it returned: the branches that the value depends on, nearest first.
//!
//! A branch is part of it if the definition that made the value, or the end of the run, is control dependent on it, or if its other side
//! may make the value anew (Gyimothy, Beszedes and Forgacs call that relevant): compilers set a register before the branch that leaves it.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::writers::{NONE, StepId};
use crate::explain::jump::Jumps;
use crate::explain::steps::{Step, Steps, Use};

/// A branch or a tail call that the returned value depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) step: StepId,
    pub(crate) kind: ReasonKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReasonKind {
    /// A conditional jump that the value, or the end of the run, is control dependent on.
    Control,
    /// A conditional jump whose other side sets a register that holds the value.
    Register,
    /// A conditional jump whose other side may write memory that holds the value.
    Memory,
    /// A tail call, or a load outside of the packet.
    Leaves,
    /// The value itself was made of what comes from outside.
    Value,
}

/// The slice, which grows backward.
pub(crate) struct Slice<'a> {
    steps: &'a Steps,
    jumps: &'a Jumps,
    work: BinaryHeap<StepId>,
    seen: HashSet<StepId>,
    /// Why each step was added first.
    kinds: HashMap<StepId, ReasonKind>,
    /// Whether the returned value comes from outside, and the instruction that made it.
    value: Option<StepId>,
    /// Whether it needs instructions that are not kept.
    pub(crate) is_cut: bool,
}

impl<'a> Slice<'a> {
    /// The slice from the end of the run; `from_outside` tells whether the returned value comes from there.
    pub(crate) fn of(steps: &'a Steps, jumps: &'a Jumps, from_outside: bool) -> Self {
        let mut slice = Self {
            steps,
            jumps,
            work: BinaryHeap::new(),
            seen: HashSet::new(),
            kinds: HashMap::new(),
            value: None,
            is_cut: false,
        };
        slice.add(steps.end);
        slice.value = from_outside.then(|| slice.definition(steps.end)).flatten();
        slice
    }

    /// The instruction that made the value which the run returned, moves and returns of functions left out.
    fn definition(&self, end: StepId) -> Option<StepId> {
        let mut at = end;
        while let Some(step) = self.steps.get(at).filter(|step| step.moves != NONE) {
            at = step.moves;
        }
        self.steps.get(at).map(|_| at)
    }

    fn add(&mut self, step: StepId) {
        if step == NONE {
            return;
        }
        if !self.steps.is_kept(step) {
            self.is_cut = true;
        } else if self.seen.insert(step) {
            self.work.push(step);
        }
    }

    /// Keeps the strongest reason for which a step is in the slice.
    fn note(&mut self, step: StepId, kind: ReasonKind) {
        if step != NONE {
            let known = self.kinds.entry(step).or_insert(kind);
            *known = (*known).min(kind);
        }
    }

    /// Adds what the values that an instruction read depend on.
    pub(crate) fn follow_operands(&mut self, id: StepId) {
        let Some(step) = self.steps.get(id) else { return };
        for used in step.uses.clone() {
            self.add(used.def());
            self.add_potential(step, id, used);
        }
    }

    /// Adds the branches between a definition and its use whose other side may define the value anew.
    fn add_potential(&mut self, user: &Step, id: StepId, used: Use) {
        let after = if used.def() == NONE { 0 } else { used.def() };
        for jump in self.jumps.between(after, id) {
            let Some(step) = self.steps.get(jump.step) else { continue };
            let Some(flow) = self.steps.flow(step.at) else { continue };
            let other = || flow.effects(step.at.slot, !jump.taken);
            let may_define = match used {
                Use::Register { reg, .. } => {
                    step.activation == user.activation && other().registers.contains(reg)
                }
                Use::Memory { address, len, .. } => {
                    let effects = other();
                    let overlaps = |(offset, bytes): &(i16, usize)| {
                        let start = jump.frame.wrapping_add_signed(i64::from(*offset));
                        start < address + len && address < start + *bytes as u64
                    };
                    effects.memory || effects.stack.iter().any(overlaps)
                }
                Use::Effect { .. } => false,
            };
            if may_define {
                let kind = match used {
                    Use::Register { .. } => ReasonKind::Register,
                    _ => ReasonKind::Memory,
                };
                self.note(jump.step, kind);
                self.add(jump.step);
            }
        }
    }

    /// The next branch backward. What it depends on besides its own control is only followed by [`follow_operands`](Self::follow_operands).
    pub(crate) fn next(&mut self) -> Option<Reason> {
        loop {
            let next = self.work.peek().copied();
            if let Some(value) = self.value.filter(|value| next.is_none_or(|next| next <= *value)) {
                self.value = None;
                return Some(Reason { step: value, kind: ReasonKind::Value });
            }
            let id = self.work.pop()?;
            let Some(step) = self.steps.get(id) else { continue };
            self.note(step.control, ReasonKind::Control);
            self.add(step.control);
            match self.kinds.get(&id) {
                Some(kind) if self.jumps.at(id).is_some() => return Some(Reason { step: id, kind: *kind }),
                Some(_) if self.jumps.leave_at(id).is_some() => {
                    return Some(Reason { step: id, kind: ReasonKind::Leaves });
                }
                _ => self.follow_operands(id),
            }
        }
    }
}
