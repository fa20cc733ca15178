//! Loops whose end something else guarantees: calls of helpers that call back, iterators, `may_goto`.
//!
//! Nobody counts how often these go round. They are walked until a round starts in a state that an earlier round's
//! covers; numbers that changed from one to the next and decided nothing so far become unknown, so that this comes soon
//! (`process_iter_next_call`, `prepare_func_exit`, `widen_imprecise_scalars` in `kernel/bpf/verifier.c`).
//!
//! Two things are special about ending a path at a checkpoint that is still open. It is not known yet what of it will
//! matter, so it must cover everything, and what turns out to matter later must be passed on to the path that ended
//! there. What matters of checkpoints in between, from which paths have ended there, is not known either: see
//! [`crate::retry`]. And the loop must come to an end:
//! something that was there at the checkpoint must have got further, and all that is older than that must be there still.
//! Then no run goes round for ever: the progress of all things, the oldest first, would rise in the order of a
//! dictionary, and each has an end. (The kernel does not ask for that: it takes `for (;;) bpf_loop(...)` for a program
//! that ends.)

use paceline_isa::{Callee, Insn};
use paceline_spec::helper::Helper;

use crate::domain::Number;
use crate::precision::Precision;
use crate::reads::{StackReads, Word};
use crate::state::{Frame, Progress, Scalar, State, Value};
use crate::walk::Walk;

impl Walk<'_> {
    /// A call of a helper that calls back, unless it is looked at again, starts a loop of its own.
    pub(crate) fn start_calling_back(&mut self) {
        let Some(Insn::Call(Callee::Helper(id))) = self.code.get(self.slot) else { return };
        let helper = u32::try_from(*id).ok().and_then(Helper::from_id);
        if helper.is_some_and(|h| h.callback().is_some()) && self.state.top().calling_back.is_none() {
            let id = self.new_id();
            self.state.top_mut().calling_back = Some(Progress { id, rounds: 0 });
        }
    }

    /// Makes numbers unknown in a state with which another round starts that differ from those with which an earlier
    /// round has started, at `slot`, and decided nothing. `just_kept`: the last checkpoint is this round's own.
    pub(crate) fn widen(&self, state: &mut State, slot: usize, just_kept: bool) {
        let is_same_call = |earlier: &&State| {
            let calls = earlier.frames().zip(state.frames()).all(|(a, b)| a.call_slot == b.call_slot);
            calls && earlier.depth() == state.depth()
        };
        let Some(earlier) = self.checkpoints.open_at(slot, just_kept).find(is_same_call) else { return };
        for (number, old) in earlier.frames().enumerate() {
            let Some(new) = state.frame(number) else { return };
            if widened(&self.precision, old, new).next().is_some() {
                let changes: Vec<Place> = widened(&self.precision, old, new).collect();
                let Some(frame) = state.frame_mut(number) else { return };
                changes.into_iter().for_each(|place| place.forget(frame));
            }
        }
    }

    /// The current path ends at a checkpoint of which not all is known: what turns out to matter of that matters of the
    /// current state too.
    pub(crate) fn share_precision_with(&mut self, earlier: &State) {
        let (precision, reads) = (&mut self.precision, &mut self.reads);
        for (old, new) in earlier.frames().zip(self.state.frames()) {
            imply_zeroed(reads, old, new);
            for (old, new) in old.registers().iter().zip(new.registers()) {
                share(precision, old, new);
            }
            for (old, new) in old.stack.slots().iter().zip(new.stack.slots()) {
                reads.imply(old.origin, new.origin, !new.fresh);
                share(precision, &old.value, &new.value);
                if old.zeros_of_value(new) != 0 {
                    mark_precise(precision, &new.value);
                }
            }
        }
    }
}

/// What is seen as written in a frame of the covering state may be unset in that of the covered one.
pub(crate) fn imply_zeroed(reads: &mut StackReads, old: &Frame, new: &Frame) {
    for (index, slot) in old.stack.slots().iter().enumerate() {
        let unset = new.stack.slot(index).unset();
        if unset != 0 {
            reads.imply_zeroed(slot.origin, unset & !slot.unset(), Word { function: new.function, index });
        }
    }
}

/// Says that what a register or a slot holds matters, if it is a number.
pub(crate) fn mark_precise(precision: &mut Precision, value: &Value) {
    if let Value::Scalar(scalar) = value {
        precision.mark_precise(scalar.mark);
    }
}

fn share(precision: &mut Precision, old: &Value, new: &Value) {
    if let (Value::Scalar(old), Value::Scalar(new)) = (old, new) {
        precision.imply(old.mark, new.mark);
    }
}

/// Where a number is in a frame.
enum Place {
    Register(usize),
    Slot(usize),
}

impl Place {
    fn forget(&self, frame: &mut Frame) {
        let value = match *self {
            Self::Register(index) => frame.registers_mut().get_mut(index),
            Self::Slot(index) => frame.stack.slots_mut().get_mut(index).map(|slot| &mut slot.value),
        };
        if let Some(value) = value {
            *value = Value::Scalar(Scalar::new(Number::UNKNOWN));
        }
    }
}

fn widened(precision: &Precision, old: &Frame, new: &Frame) -> impl Iterator<Item = Place> {
    let is_wide = |old: &Value, new: &Value| match (old, new) {
        (Value::Scalar(old), Value::Scalar(new)) => {
            old.number != new.number && !precision.is_precise(old.mark) && !decided(precision, new)
        }
        _ => false,
    };
    let registers = old.registers().iter().zip(new.registers()).enumerate();
    let registers = registers.filter(move |(_, (old, new))| is_wide(old, new));
    let slots = old.stack.slots().iter().zip(new.stack.slots()).enumerate();
    let slots =
        slots.filter(move |(_, (old, new))| new.spilled_bytes() != 0 && is_wide(&old.value, &new.value));
    registers.map(|(index, _)| Place::Register(index)).chain(slots.map(|(index, _)| Place::Slot(index)))
}

/// Whether a number is known to have decided something since the last checkpoint; one that came from none has no mark.
fn decided(precision: &Precision, scalar: &Scalar) -> bool {
    scalar.mark != crate::precision::Mark::NONE && precision.is_precise(scalar.mark)
}

/// The oldest that is there in both states and has made progress from one to the other, by its id.
pub(crate) fn progress_between(earlier: &State, now: &State) -> Option<u32> {
    let further =
        |(old, new): (Progress, Progress)| (old.id == new.id && old.rounds != new.rounds).then_some(old.id);
    let in_frame = |(old, new): (&Frame, &Frame)| {
        let iterators = old.stack.slots().iter().zip(new.stack.slots());
        let iterators = iterators.filter_map(|(old, new)| old.iterator().zip(new.iterator()));
        let iterators = iterators.filter_map(|(old, new)| further((old.progress, new.progress)));
        let calls = old.calling_back.zip(new.calling_back).and_then(further);
        iterators.chain(calls).chain(further((old.may_goto, new.may_goto))).min()
    };
    earlier.frames().zip(now.frames()).filter_map(in_frame).min()
}
