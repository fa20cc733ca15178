//! Loads and stores on the stack.

use paceline_isa::Operand;

use super::alu::truncated;
use super::registers::Transformer;
use crate::checker::check_aligned;
use crate::domain::access::Span;
use crate::domain::number::Number;
use crate::domain::state::{Byte, Lost, Slot, Stack, Value, parts};
use crate::error::{Check, invariant};

impl Transformer<'_> {
    pub(super) fn load_stack(&mut self, span: &Span, frame: usize) -> Check<Value> {
        self.check().check_stack_load(span, frame)?;
        let (start, size) = span.extent();
        if size != span.size {
            return Ok(self.somewhere(span, frame));
        }
        let (index, first) = Stack::place(start);
        let slot = self.check().frame(frame)?.stack.slots().get(index).unwrap_or(&Slot::EMPTY);
        Ok(load_slot(slot, first, span.size as usize))
    }

    /// A load at an unknown offset: zero if all bytes it may read are zero, otherwise an unknown number.
    fn somewhere(&self, span: &Span, frame: usize) -> Value {
        let (start, size) = span.extent();
        let is_zero = |offset: i64| {
            let (index, byte) = Stack::place(offset);
            self.state.frame(frame).is_some_and(|f| f.stack.slot(index).bytes.get(byte) == Some(&Byte::Zero))
        };
        let all_zero = (start..start.saturating_add_unsigned(size)).all(is_zero);
        Value::number(if all_zero { Number::ZERO } else { Number::unsigned(span.size as u32 * 8) })
    }

    pub(super) fn store_stack(&mut self, span: &Span, frame: usize, src: Operand, value: Value) -> Check {
        check_aligned(span)?;
        self.check().check_stack(span, frame)?;
        let range = span.offsets();
        if range.min != range.max {
            return self.store_stack_somewhere(span, frame, &value);
        }
        let (index, first) = Stack::place(range.min);
        let size = span.size as usize;
        self.check().check_spill(span, frame, src, &value)?;
        let is_zero = value.is_null();
        if first != 0 && is_zero {
            self.records.precision.mark_value(&value);
        }
        let value = self.end_slices_under(value, frame, range.min);
        self.lose_dynptrs(frame, range.min, span.size)?;
        if size != 8 {
            self.check().note_bytes_as_numbers(frame, index);
        }
        let slot = self.frame_mut(frame)?.stack.slot_mut(index);
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
        let is_one = value.may_be_buffer(|buffer| buffer.has(frame, offset, 8));
        if is_one { Value::stale(self.slot, Lost::Buffer) } else { value }
    }

    /// A store at an unknown offset may change any of the bytes.
    fn store_stack_somewhere(&mut self, span: &Span, frame: usize, value: &Value) -> Check {
        let (start, size) = span.extent();
        self.check().note_seen(frame, start, size)?;
        let is_zero = value.is_null();
        if is_zero {
            self.records.precision.mark_value(value);
        }
        self.lose_dynptrs(frame, start, size)?;
        self.note_as_number(value);
        parts(start, size).for_each(|(index, _)| self.check().note_bytes_as_numbers(frame, index));
        let precision = &mut self.records.precision;
        let frame = invariant(self.state.frame_mut(frame), "the stack was checked")?;
        for (index, bytes) in parts(start, size) {
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
        self.check().check_stack(span, frame)?;
        let (start, size) = span.extent();
        if size != span.size {
            parts(start, size).for_each(|(index, _)| self.check().note_bytes_as_numbers(frame, index));
        }
        self.overwrite_bytes(frame, start, size)
    }

    /// The same for bytes that were checked to be in the frame.
    pub(super) fn overwrite_bytes(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        self.check().note_seen(frame, offset, size)?;
        self.lose_dynptrs(frame, offset, size)?;
        for (index, bytes) in parts(offset, size) {
            if bytes != 0xff {
                self.check().note_bytes_as_numbers(frame, index);
            }
        }
        let frame = self.frame_mut(frame)?;
        for (index, bytes) in parts(offset, size) {
            frame.stack.slot_mut(index).overwrite(bytes, Byte::Data);
        }
        Ok(())
    }
}

/// The value of bytes of a slot (`check_stack_read_fixed_off`).
fn load_slot(slot: &Slot, first: usize, size: usize) -> Value {
    match slot.value {
        value if slot.spilled_bytes() == 8 && size == 8 => return value,
        Value::Scalar(scalar) if slot.holds_low_bytes(first, size) => {
            return Value::Scalar(truncated(&scalar, size as u32 * 8));
        }
        _ => {}
    }
    let bytes = &slot.bytes[first..first + size];
    if slot.value.is_null() && bytes.iter().all(|&b| b == Byte::Spilled) {
        // The mark remains: that the number is zero matters if the original number does.
        return slot.value;
    }
    let is_zero = bytes.iter().all(|&b| b == Byte::Zero);
    Value::number(if is_zero { Number::ZERO } else { Number::unsigned(size as u32 * 8) })
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
