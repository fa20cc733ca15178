//! Loops without a counter of their own: calls of helpers with callbacks, iterators, `may_goto`.
//!
//! The number of rounds is unknown. A loop is walked until a round starts in a state that an earlier round's state covers;
//! imprecise numbers that differ between rounds are widened to unknown, so that the loop converges early
//! (`process_iter_next_call`, `prepare_func_exit`, `widen_imprecise_scalars` in `kernel/bpf/verifier.c`).
//!
//! A path that ends at an open checkpoint needs two more rules. First, the precise numbers of that checkpoint are not
//! complete, so it must cover the whole state, and numbers that become precise later must become precise in the ended path
//! too. The same holds for the checkpoints in between: see [`crate::retry`]. Second, the loop must terminate: one object
//! with a progress count must have advanced since the checkpoint, and all older ones must still exist. Then the sequence of
//! progress counts, oldest first, increases lexicographically, and each count is bounded. (The kernel has no such rule: it
//! accepts `for (;;) bpf_loop(...)`.)

use paceline_isa::{Callee, Insn};
use paceline_spec::helper::Helper;

use crate::domain::number::Number;
use crate::domain::precision::Precision;
use crate::domain::reads::{StackReads, Word};
use crate::domain::state::{Frame, Progress, Scalar, State, Value};
use crate::walk::Walk;

impl Walk<'_> {
    /// A new call of a helper with a callback starts a loop of its own.
    pub(crate) fn start_calling_back(&mut self) {
        let Some(Insn::Call(Callee::Helper(id))) = self.code.get(self.slot) else { return };
        let helper = Helper::from_imm(*id);
        if helper.is_some_and(|h| h.callback().is_some()) && self.state.top().calling_back.is_none() {
            let id = self.new_id();
            self.state.top_mut().calling_back = Some(Progress { id, rounds: 0 });
        }
    }

    /// Widens imprecise numbers at the start of a round, at `slot`, that differ from those at the start of an earlier
    /// round. `just_kept`: the last checkpoint is this round's own.
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

    /// The current path ends at an open checkpoint: a number that becomes precise there later becomes precise in the
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

/// Bytes that are written in the covering state may be unset in the covered one: reads of them require zeroed words on
/// entry.
pub(crate) fn imply_zeroed(reads: &mut StackReads, old: &Frame, new: &Frame) {
    for (index, slot) in old.stack.slots().iter().enumerate() {
        let unset = new.stack.slot(index).unset();
        if unset != 0 {
            reads.imply_zeroed(slot.origin, unset & !slot.unset(), Word { function: new.function, index });
        }
    }
}

/// Marks a register or slot as precise, if it holds a number.
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

/// Whether a number became precise since the last checkpoint; a number without an origin has no mark.
fn decided(precision: &Precision, scalar: &Scalar) -> bool {
    scalar.mark != crate::domain::precision::Mark::NONE && precision.is_precise(scalar.mark)
}

/// Id of the oldest object with a progress count that exists in both states and has advanced.
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
