//! Loops without a counter of their own: calls of helpers with callbacks, iterators, `may_goto`.
//!
//! The number of rounds is unknown. A loop is walked until a round starts in a state that an earlier round's state covers;
//! imprecise numbers that differ between rounds are widened to unknown, so that the loop converges early
//! (`process_iter_next_call`, `prepare_func_exit`, `widen_imprecise_scalars` in `kernel/bpf/verifier.c`).
//!
//! A path that ends at an open checkpoint needs two more rules. First, the precise numbers of that checkpoint are not
//! complete, so it must cover the whole state, and numbers that become precise later must become precise in the ended path
//! too. The same holds for the checkpoints in between: see `exploration::backedges`. Second, the loop must terminate: one
//! object with a progress count must have advanced since the checkpoint, and all older ones must still exist. Then the sequence of
//! progress counts, oldest first, increases lexicographically, and each count is bounded. (The kernel has no such rule: it
//! accepts `for (;;) bpf_loop(...)`.)

use super::number::Number;
use super::precision::Precision;
use super::state::{Frame, Progress, Scalar, State, Value};

/// Widens imprecise numbers at the start of a round that differ from those at the start of an earlier round.
pub(crate) fn widen(precision: &Precision, earlier: &State, state: &mut State) {
    for (number, old) in earlier.frames().enumerate() {
        let Some(new) = state.frame(number) else { return };
        if widened(precision, old, new).next().is_some() {
            let changes: Vec<Place> = widened(precision, old, new).collect();
            let Some(frame) = state.frame_mut(number) else { return };
            changes.into_iter().for_each(|place| place.forget(frame));
        }
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
            old.number != new.number && !precision.is_precise(old.mark) && !precision.is_decided(new)
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
