//! What a covering state passes on to the state that it covers: the uses of its values are uses of the covered ones.

use super::precision::Precision;
use super::reads::{StackReads, Word};
use super::state::{Frame, State, Value};

/// The covering state is complete: values that are precise in it, and bytes that are read, become so in the covered one.
pub(crate) fn inherit(precision: &mut Precision, reads: &mut StackReads, earlier: &State, now: &State) {
    for (old, new) in earlier.frames().zip(now.frames()) {
        imply_zeroed(reads, old, new);
        for (old, new) in old.registers().iter().zip(new.registers()) {
            inherit_value(precision, old, new);
        }
        for (old, new) in old.stack.slots().iter().zip(new.stack.slots()) {
            reads.inherit(old.origin, new.origin, !new.fresh);
            if reads.bytes_read(old.origin) != 0 {
                inherit_value(precision, &old.value, &new.value);
            }
            if old.zeros_of_value(new) & reads.bytes_read(old.origin) != 0 {
                precision.mark_value(&new.value);
            }
        }
    }
}

/// The covering state has open paths: a number that becomes precise in it later becomes precise in the covered state too.
pub(crate) fn share(precision: &mut Precision, reads: &mut StackReads, earlier: &State, now: &State) {
    for (old, new) in earlier.frames().zip(now.frames()) {
        imply_zeroed(reads, old, new);
        for (old, new) in old.registers().iter().zip(new.registers()) {
            share_value(precision, old, new);
        }
        for (old, new) in old.stack.slots().iter().zip(new.stack.slots()) {
            reads.imply(old.origin, new.origin, !new.fresh);
            share_value(precision, &old.value, &new.value);
            if old.zeros_of_value(new) != 0 {
                precision.mark_value(&new.value);
            }
        }
    }
}

/// Bytes that are written in the covering state may be unset in the covered one: reads of them require zeroed words on
/// entry.
fn imply_zeroed(reads: &mut StackReads, old: &Frame, new: &Frame) {
    for (index, slot) in old.stack.slots().iter().enumerate() {
        let unset = new.stack.slot(index).unset();
        if unset != 0 {
            reads.imply_zeroed(slot.origin, unset & !slot.unset(), Word { function: new.function, index });
        }
    }
}

fn inherit_value(precision: &mut Precision, old: &Value, new: &Value) {
    if let (Value::Scalar(old), Value::Scalar(new)) = (old, new)
        && precision.is_precise(old.mark)
    {
        precision.mark_precise(new.mark);
    }
}

fn share_value(precision: &mut Precision, old: &Value, new: &Value) {
    if let (Value::Scalar(old), Value::Scalar(new)) = (old, new) {
        precision.imply(old.mark, new.mark);
    }
}
