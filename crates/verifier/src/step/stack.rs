//! Loads and stores on the stack.

use paceline_isa::{Operand, Reg};

use super::alu::truncated;
use super::dynptr::may_be_buffer;
use super::memory::{Access, Span};
use crate::domain::number::Number;
use crate::domain::reads::Word;
use crate::domain::state::{Byte, Lost, MAX_STACK, Slot, Stack, Target, Value, parts};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::walk::Walk;

impl Walk<'_> {
    /// Checks that an access is within a frame's 512 bytes, and records the stack depth.
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

    /// A load at an unknown offset: zero if all bytes it may read are zero, otherwise an unknown number.
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

    /// The same for bytes that are read as plain bytes.
    pub(super) fn note_read(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        parts(offset, size).for_each(|(index, _)| self.note_bytes_as_numbers(frame, index));
        self.note_fill(frame, offset, size)
    }

    /// Records a read of stack bytes with the checkpoints of their origin. Iterators have no readable bytes.
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

    /// Records the reader of stack bytes: the instruction, or a function that has a pointer to its caller's stack.
    fn note_reader(&mut self, frame: usize, offset: i64, size: u64) {
        if frame == self.state.depth() {
            return self.facts.stack_read(self.slot, offset, size);
        }
        let function = self.state.frame(frame).map(|frame| frame.function);
        let Some(shared) = function.and_then(|f| self.stack_shared.get_mut(f)) else { return };
        parts(offset, size).for_each(|(index, _)| *shared |= 1 << index);
    }

    /// Records that stack bytes may be seen, so that unset ones must be zero: they are read, or an unknown part of them is
    /// written.
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

    /// If a pointer is spilled, slices that may overlap its bytes end: no write through a slice may change it. It may be
    /// such a slice itself.
    fn end_slices_under(&mut self, value: Value, frame: usize, offset: i64) -> Value {
        if value.pointer().is_none() {
            return value;
        }
        self.end_slices_of(frame, offset, 8);
        let is_one = may_be_buffer(&value, |buffer| buffer.has(frame, offset, 8));
        if is_one { Value::stale(self.slot, Lost::Buffer) } else { value }
    }

    /// A store at an unknown offset may change any of the bytes.
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
            // Storing zero to zero bytes changes nothing.
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

    /// Makes these bytes unknown data; the offset may be unknown.
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

/// Stack accesses must be aligned at every possible offset, on every machine, so that spilled registers are not split.
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
        // The mark remains: that the number is zero matters if the original number does.
        return Ok(slot.value);
    }
    Ok(Value::number(if zero { Number::ZERO } else { any }))
}

/// The low bytes of a value; the link remains if nothing was truncated.
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
