//! Loads and stores on the stack.

use paceline_isa::{Operand, Reg};

use super::registers::Checker;
use super::span::check_aligned;
use crate::domain::access::{Access, Span};
use crate::domain::reads::Word;
use crate::domain::state::{MAX_STACK, Stack, Target, Value, parts};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};

impl Checker<'_> {
    /// Checks that an access is within a frame's 512 bytes, and records the stack depth.
    pub(crate) fn check_stack(&mut self, span: &Span, frame: usize) -> Check {
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
        let function = self.frame(frame)?.function;
        let used = &mut self.records.facts.function_mut(function).stack;
        *used = (*used).max(range.min.unsigned_abs() as u32);
        Ok(())
    }

    /// A load from the stack; at an unknown offset it reads plain bytes.
    pub(crate) fn check_stack_load(&mut self, span: &Span, frame: usize) -> Check {
        check_aligned(span)?;
        self.check_stack(span, frame)?;
        let (start, size) = span.extent();
        if size != span.size {
            return self.note_read(frame, start, size);
        }
        self.note_fill(frame, start, size)?;
        let (index, _) = Stack::place(start);
        match self.frame(frame)?.stack.slots().get(index) {
            Some(slot) if slot.value.pointer().is_some() && size != 8 => reject(Cause::PartialFill),
            _ => Ok(()),
        }
    }

    /// A store to the stack at a known offset (of pointers: all 8 bytes, and not of one to a stack to that of a caller).
    pub(crate) fn check_spill(&self, span: &Span, frame: usize, src: Operand, value: &Value) -> Check {
        let Value::Pointer(pointer) = value else { return Ok(()) };
        let register = RegName(src.reg().unwrap_or(Reg::R0));
        if span.size != 8 {
            return reject(Cause::PartialSpill(register));
        }
        if matches!(pointer.target, Target::Stack { .. }) && frame != self.state.depth() {
            return reject(Cause::StackPointerEscapes(register));
        }
        Ok(())
    }

    /// Bytes are read as plain bytes.
    pub(super) fn note_read(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        parts(offset, size).for_each(|(index, _)| self.note_bytes_as_numbers(frame, index));
        self.note_fill(frame, offset, size)
    }

    /// Records a read of stack bytes with the checkpoints of their origin. Iterators have no readable bytes.
    fn note_fill(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        self.note_seen(frame, offset, size)?;
        self.note_reader(frame, offset, size)?;
        let frame = self.frame(frame)?;
        for (index, bytes) in parts(offset, size) {
            if let Some(slot) = frame.stack.slots().get(index) {
                if slot.iterator().is_some() {
                    return reject(Cause::IteratorRead);
                }
                if slot.dynptr().is_some() {
                    return reject(Cause::DynptrRead);
                }
                self.records.reads.read(slot.origin, bytes & !slot.fresh);
            }
        }
        Ok(())
    }

    /// Records the reader of stack bytes: the instruction, or a function that has a pointer to its caller's stack.
    fn note_reader(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        if frame == self.state.depth() {
            self.records.facts.stack_read(self.slot, offset, size);
            return Ok(());
        }
        let shared = &mut self.records.facts.function_mut(self.frame(frame)?.function).shared;
        parts(offset, size).for_each(|(index, _)| *shared |= 1 << index);
        Ok(())
    }

    /// Records that stack bytes may be seen, so that unset ones must be zero: they are read, or an unknown part of them is
    /// written.
    pub(crate) fn note_seen(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        let frame = self.frame(frame)?;
        for (index, bytes) in parts(offset, size) {
            let slot = frame.stack.slot(index);
            if slot.unset() & bytes != 0 {
                self.records.reads.zero(Word { function: frame.function, index });
            }
            self.records.reads.see(slot.origin, bytes & !slot.fresh);
        }
        Ok(())
    }

    /// Records that bytes of a stack are used as numbers: they are read, or a part of them is overwritten.
    pub(crate) fn note_bytes_as_numbers(&mut self, frame: usize, index: usize) {
        if let Some(frame) = self.state.frame(frame) {
            self.records.facts.note_as_number(self.slot, &frame.stack.slot(index).value);
        }
    }

    /// Helpers must not overwrite dynptrs.
    pub(crate) fn check_no_dynptr(&self, span: &Span, frame: usize) -> Check {
        let (start, size) = span.extent();
        let frame = self.frame(frame)?;
        match parts(start, size).any(|(index, _)| frame.stack.slot(index).dynptr().is_some()) {
            true => reject(Cause::DynptrWritten(RegName(span.register))),
            false => Ok(()),
        }
    }

    /// A dynptr with a reference must be released before a part of it is overwritten (`destroy_if_dynptr_stack_slot`).
    pub(crate) fn check_no_record(&self, frame: usize, offset: i64, size: u64) -> Check {
        let frame = self.frame(frame)?;
        let mut touched = parts(offset, size).filter_map(|(index, _)| frame.stack.slot(index).dynptr());
        match touched.any(|dynptr| dynptr.reference != 0) {
            true => reject(Cause::RecordOverwritten),
            false => Ok(()),
        }
    }
}
