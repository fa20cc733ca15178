//! Loads and stores on the stack.

use paceline_isa::{Operand, Reg};

use super::alu::truncated;
use super::dynptr::may_be_buffer;
use super::memory::{Access, Span};
use crate::domain::Number;
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::reads::Word;
use crate::state::{Byte, Lost, MAX_STACK, Slot, Stack, Target, Value, parts};
use crate::walk::Walk;

impl Walk<'_> {
    /// Checks that an access stays within a frame's 512 bytes, and notes how deep it goes.
    pub(super) fn check_stack(&mut self, span: &Span, frame: usize) -> Check {
        let range = span.offsets();
        let lowest = -i64::from(MAX_STACK);
        let end = range.max.checked_add_unsigned(span.size);
        if range.min < lowest || end.is_none_or(|end| end > 0) {
            let cause = Cause::StackBounds {
                register: RegName(span.register),
                offset: range,
                size: span.size,
                write: span.access == Access::Write,
            };
            let hint = if range.min == range.max { Hint::StackTooDeep } else { Hint::BoundOffset };
            return if range.min < lowest { reject_with(cause, hint) } else { reject(cause) };
        }
        let function = self.state.frame(frame).map_or(0, |f| f.function);
        if let Some(used) = self.stack_used.get_mut(function) {
            *used = (*used).max(range.min.unsigned_abs() as u32);
        }
        Ok(())
    }

    pub(super) fn load_stack(&mut self, span: &Span, frame: usize) -> Check<Value> {
        check_aligned(span)?;
        self.check_stack(span, frame)?;
        let range = span.offsets();
        if range.min != range.max {
            return self.load_stack_somewhere(span, frame);
        }
        self.note_fill(frame, range.min, span.size)?;
        let (index, first) = Stack::place(range.min);
        let slot = self.state.frame(frame).map_or(Slot::EMPTY, |f| f.stack.slot(index));
        load_slot(&slot, first, span.size as usize)
    }

    /// A load whose place is not known: zero if all bytes it may read are zero, or else any number.
    fn load_stack_somewhere(&mut self, span: &Span, frame: usize) -> Check<Value> {
        let range = span.offsets();
        let (start, size) = (range.min, (range.max - range.min).unsigned_abs() + span.size);
        self.note_read(frame, start, size)?;
        let is_zero = |offset: i64| {
            let (index, byte) = Stack::place(offset);
            self.state.frame(frame).is_some_and(|f| f.stack.slot(index).bytes.get(byte) == Some(&Byte::Zero))
        };
        let all_zero = (start..start.saturating_add_unsigned(size)).all(is_zero);
        Ok(Value::number(if all_zero { Number::ZERO } else { Number::unsigned(span.size as u32 * 8) }))
    }

    /// The same for bytes that are read as such.
    pub(super) fn note_read(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        parts(offset, size).for_each(|(index, _)| self.note_bytes_as_numbers(frame, index));
        self.note_fill(frame, offset, size)
    }

    /// Says that stack bytes matter to the checkpoints that they come from. An iterator has none to read.
    fn note_fill(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        self.note_seen(frame, offset, size);
        self.note_reader(frame, offset, size);
        let Some(frame) = self.state.frame(frame) else { return Ok(()) };
        for (index, bytes) in parts(offset, size) {
            if let Some(slot) = frame.stack.slots().get(index) {
                if slot.iterator().is_some() {
                    return reject(Cause::IteratorRead);
                }
                if slot.dynptr().is_some() {
                    return reject(Cause::DynptrRead);
                }
                self.reads.read(slot.origin, bytes & !slot.fresh);
            }
        }
        Ok(())
    }

    /// Says who reads stack bytes: the instruction, or a function that its caller's stack was given to.
    fn note_reader(&mut self, frame: usize, offset: i64, size: u64) {
        if frame == self.state.depth() {
            return self.facts.stack_read(self.slot, offset, size);
        }
        let function = self.state.frame(frame).map(|frame| frame.function);
        let Some(shared) = function.and_then(|f| self.stack_shared.get_mut(f)) else { return };
        parts(offset, size).for_each(|(index, _)| *shared |= 1 << index);
    }

    /// Says that what stack bytes hold may be seen, so that those never written have to be zero: they are read, or
    /// some of them are written and it is not known which.
    fn note_seen(&mut self, frame: usize, offset: i64, size: u64) {
        let Some(frame) = self.state.frame(frame) else { return };
        for (index, bytes) in parts(offset, size) {
            let slot = frame.stack.slot(index);
            if slot.unset() & bytes != 0 {
                self.reads.zero(Word { function: frame.function, index });
            }
            self.reads.see(slot.origin, bytes & !slot.fresh);
        }
    }

    pub(super) fn store_stack(&mut self, span: &Span, frame: usize, src: Operand, value: Value) -> Check {
        check_aligned(span)?;
        self.check_stack(span, frame)?;
        let range = span.offsets();
        if range.min != range.max {
            return self.store_stack_somewhere(span, frame, &value);
        }
        let (index, first) = Stack::place(range.min);
        let size = span.size as usize;
        if let Value::Pointer(pointer) = value {
            let register = RegName(src.reg().unwrap_or(Reg::R0));
            if size != 8 {
                return reject(Cause::PartialSpill(register));
            }
            if matches!(pointer.target, Target::Stack { .. }) && frame != self.state.depth() {
                return reject(Cause::StackPointerEscapes(register));
            }
        }
        let is_zero = value.is_null();
        if first != 0 && is_zero {
            self.mark_precise(&value);
        }
        let value = self.end_slices_under(value, frame, range.min);
        self.lose_dynptrs(frame, range.min, span.size)?;
        if size != 8 {
            self.note_bytes_as_numbers(frame, index);
        }
        let Some(frame) = self.state.frame_mut(frame) else { return Ok(()) };
        let slot = frame.stack.slot_mut(index);
        if first == 0 {
            slot.spill(narrowed(value, size), size);
        } else {
            let bytes = ((1u16 << size) - 1) << first;
            slot.overwrite(bytes as u8, if is_zero { Byte::Zero } else { Byte::Data });
        }
        Ok(())
    }

    /// A pointer is spilled, which no write through a slice may change: slices that may be its bytes end. It may be one.
    fn end_slices_under(&mut self, value: Value, frame: usize, offset: i64) -> Value {
        if value.pointer().is_none() {
            return value;
        }
        self.end_slices_of(frame, offset, 8);
        let is_one = may_be_buffer(&value, |buffer| buffer.has(frame, offset, 8));
        if is_one { Value::stale(self.slot, Lost::Buffer) } else { value }
    }

    /// A store whose place is not known may change any of the bytes.
    fn store_stack_somewhere(&mut self, span: &Span, frame: usize, value: &Value) -> Check {
        let range = span.offsets();
        let size = (range.max - range.min).unsigned_abs() + span.size;
        self.note_seen(frame, range.min, size);
        let is_zero = value.is_null();
        if is_zero {
            self.mark_precise(value);
        }
        self.lose_dynptrs(frame, range.min, size)?;
        self.note_as_number(value);
        parts(range.min, size).for_each(|(index, _)| self.note_bytes_as_numbers(frame, index));
        let precision = &mut self.precision;
        let Some(frame) = self.state.frame_mut(frame) else { return Ok(()) };
        for (index, bytes) in parts(range.min, size) {
            let slot = frame.stack.slot_mut(index);
            // Zeros over zeros change nothing.
            let changed = bytes & !if is_zero { slot.zeros() } else { 0 };
            if let (true, Value::Scalar(scalar)) = (changed != bytes, &slot.value) {
                precision.mark_precise(scalar.mark);
            }
            if changed != 0 {
                slot.overwrite(changed, Byte::Data);
            }
        }
        Ok(())
    }

    /// Anything may be in these bytes afterwards; the place may be unknown.
    pub(super) fn overwrite_stack(&mut self, span: &Span, frame: usize) -> Check {
        self.check_stack(span, frame)?;
        let range = span.offsets();
        let size = (range.max - range.min).unsigned_abs() + span.size;
        if range.min != range.max {
            parts(range.min, size).for_each(|(index, _)| self.note_bytes_as_numbers(frame, index));
        }
        self.overwrite_bytes(frame, range.min, size)
    }

    /// The same for bytes that were checked to be in the frame.
    pub(super) fn overwrite_bytes(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        self.note_seen(frame, offset, size);
        self.lose_dynptrs(frame, offset, size)?;
        for (index, bytes) in parts(offset, size) {
            if bytes != 0xff {
                self.note_bytes_as_numbers(frame, index);
            }
        }
        let Some(frame) = self.state.frame_mut(frame) else { return Ok(()) };
        for (index, bytes) in parts(offset, size) {
            frame.stack.slot_mut(index).overwrite(bytes, Byte::Data);
        }
        Ok(())
    }
}

/// Loads and stores on the stack are aligned wherever they may lie, whatever the machine, so that spilled registers stay
/// whole.
pub(super) fn check_aligned(span: &Span) -> Check {
    if span.is_aligned() {
        return Ok(());
    }
    reject(Cause::StackAlignment { offset: span.offsets(), size: span.size })
}

/// The value of bytes of a slot (`check_stack_read_fixed_off`).
fn load_slot(slot: &Slot, first: usize, size: usize) -> Check<Value> {
    let any = Number::unsigned(size as u32 * 8);
    let spilled = slot.spilled_bytes();
    match slot.value {
        value if spilled == 8 && size == 8 => return Ok(value),
        Value::Pointer(_) => return reject(Cause::PartialFill),
        Value::Scalar(scalar) if slot.holds_low_bytes(first, size) => {
            return Ok(Value::Scalar(truncated(&scalar, size as u32 * 8)));
        }
        _ => {}
    }
    let bytes = slot.bytes.get(first..first + size).unwrap_or_default();
    let zero = bytes.iter().all(|&b| b == Byte::Zero);
    let spilled_zero = slot.value.is_null() && bytes.iter().all(|&b| b == Byte::Spilled);
    if spilled_zero {
        // Keeps the mark: that the number is zero matters if this one does.
        return Ok(slot.value);
    }
    Ok(Value::number(if zero { Number::ZERO } else { any }))
}

/// What the low bytes of a value still say of it: it stays equal to others if nothing was cut off.
fn narrowed(value: Value, size: usize) -> Value {
    match value {
        Value::Scalar(mut scalar) if size < 8 => {
            let fits = scalar.number.umax() >> (size * 8) == 0;
            scalar.link = scalar.link.filter(|_| fits);
            Value::Scalar(scalar)
        }
        other => other,
    }
}
