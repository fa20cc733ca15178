//! Dynptrs: sized pointers on the stack, and slices of their memory (`process_dynptr_func`, `destroy_if_dynptr_stack_slot`,
//! `check_special_kfunc` in `kernel/bpf/verifier.c`).

use paceline_isa::Reg;
use paceline_spec::kfunc::DYNPTR_BYTES;

use super::helper::wrong_argument;
use super::memory::{Access, Span};
use super::stack::check_aligned;
use crate::domain::state::{
    Buffer, Byte, Dynptr, DynptrMemory, Lent, Lost, Pointer, ReferenceKind, Slot, Stack, Target, Value, parts,
};
use crate::error::{Cause, Check, RegName, reject};
use crate::walk::Walk;

impl Walk<'_> {
    /// The stack place of a dynptr argument, whose offset must be constant.
    fn dynptr_span(&mut self, callee: &str, register: Reg, value: &Value) -> Check<(Span, usize)> {
        const WANTED: &str = "a dynptr at a known stack offset";
        let (pointer, frame) = match value {
            Value::Pointer(pointer @ Pointer { target: Target::Stack { frame }, .. })
                if pointer.offset().is_some() =>
            {
                (*pointer, usize::from(*frame))
            }
            other => return wrong_argument(callee, register, WANTED, other),
        };
        let span = Span { register, pointer, offset: 0, size: DYNPTR_BYTES.into(), access: Access::Write };
        check_aligned_to_slots(&span)?;
        self.check_stack(&span, frame)?;
        Ok((span, frame))
    }

    /// An initialized dynptr, on the stack or an argument of a global function.
    pub(super) fn check_dynptr(&mut self, callee: &str, register: Reg, value: &Value) -> Check<Dynptr> {
        if let Some(pointer @ Pointer { target: Target::Dynptr { parameter }, .. }) = value.pointer()
            && pointer.offset() == Some(0)
        {
            let memory = DynptrMemory::Lent(*parameter);
            return Ok(Dynptr { id: pointer.id, first: true, memory, reference: 0 });
        }
        let (span, frame) = self.dynptr_span(callee, register, value)?;
        let (low, high) = (Stack::place(span.offsets().min).0, Stack::place(span.offsets().min + 8).0);
        let half = |index| self.state.frame(frame).and_then(|frame| frame.stack.slot(index).dynptr());
        match (half(low), half(high)) {
            (Some(low), Some(high)) if low.first && !high.first && low.id == high.id => Ok(low),
            _ => reject(Cause::NoDynptr(RegName(register))),
        }
    }

    /// The place for a new dynptr; an existing one is destroyed.
    pub(super) fn check_new_dynptr(&mut self, callee: &str, register: Reg, value: &Value) -> Check<Span> {
        let (span, frame) = self.dynptr_span(callee, register, value)?;
        self.end_slices_of(frame, span.offsets().min, span.size);
        self.overwrite_stack(&span, frame)?;
        Ok(span)
    }

    /// A dynptr to a record, at its place.
    pub(super) fn check_record_dynptr(&mut self, callee: &str, register: Reg, value: &Value) -> Check<u32> {
        match self.check_dynptr(callee, register, value)? {
            Dynptr { memory: DynptrMemory::Record, reference, .. } => Ok(reference),
            _ => wrong_argument(callee, register, "a dynptr to a ring buffer record", value),
        }
    }

    /// A new reference for a dynptr's record.
    pub(super) fn acquire_record(&mut self) -> u32 {
        let id = self.new_id();
        self.add_reference(id, ReferenceKind::Record);
        id
    }

    /// Destroys the dynptrs to a record and invalidates pointers to its memory (`unmark_stack_slots_dynptr`).
    pub(super) fn lose_record(&mut self, reference: u32) {
        if reference == 0 {
            return;
        }
        let is_of = |slot: &Slot| slot.dynptr().is_some_and(|dynptr| dynptr.reference == reference);
        for number in 0..=self.state.depth() {
            if self.state.frame(number).is_some_and(|frame| frame.stack.slots().iter().any(is_of))
                && let Some(frame) = self.state.frame_mut(number)
            {
                for slot in frame.stack.slots_mut().iter_mut().filter(|slot| is_of(slot)) {
                    slot.overwrite(u8::MAX, Byte::Data);
                }
            }
        }
        self.end_slices(
            |buffer| matches!(buffer, Buffer::Dynptr { reference: own, .. } if *own == reference),
        );
    }

    /// Initializes a dynptr; one with a reference is to a record.
    pub(super) fn make_dynptr(&mut self, span: &Span, memory: DynptrMemory, reference: u32) {
        let Target::Stack { frame } = span.pointer.target else { return };
        let id = self.new_id();
        let start = span.offsets().min;
        let Some(frame) = self.state.frame_mut(usize::from(frame)) else { return };
        for (offset, first) in [(start, true), (start + 8, false)] {
            frame.stack.slot_mut(Stack::place(offset).0).place_dynptr(Dynptr {
                id,
                first,
                memory,
                reference,
            });
        }
    }

    /// A slice of a dynptr, or null: the dynptr's own memory or, if that may be the packet, possibly the buffer.
    pub(super) fn slice(&mut self, dynptr: &Dynptr, size: u32, writable: bool, span: Option<&Span>) -> Value {
        let buffer = span.and_then(Span::as_buffer);
        let target = match dynptr.memory {
            DynptrMemory::Packet => Target::Slice { size, writable, buffer, lent: None },
            DynptrMemory::Lent(parameter) => {
                let lent = Some(Lent { parameter, packet_moved: false });
                Target::Slice { size, writable, buffer, lent }
            }
            DynptrMemory::Value | DynptrMemory::Record => return self.dynptr_data(dynptr, size, writable),
        };
        self.or_null(target)
    }

    /// Memory of a dynptr that is not the packet, or null (`bpf_dynptr_data`).
    pub(super) fn dynptr_data(&mut self, dynptr: &Dynptr, size: u32, writable: bool) -> Value {
        let buffer = Some(Buffer::Dynptr { id: dynptr.id, reference: dynptr.reference });
        self.or_null(Target::Slice { size, writable, buffer, lent: None })
    }

    fn or_null(&mut self, target: Target) -> Value {
        Value::Pointer(Pointer { nullable: true, id: self.new_id(), ..Pointer::to(target) })
    }

    /// Turns slices that may lie in certain buffers into numbers. The kernel does not invalidate them.
    fn end_slices(&mut self, is_gone: impl Fn(&Buffer) -> bool) {
        let ends = |value: &Value| may_be_buffer(value, &is_gone);
        let slot = self.slot;
        self.state.update(ends, |value| *value = Value::stale(slot, Lost::Buffer));
    }

    /// A function has returned: the buffers on its stack end.
    pub(super) fn lose_buffers(&mut self) {
        let depth = self.state.depth();
        self.end_slices(
            |buffer| matches!(buffer, Buffer::Stack { frame, .. } if usize::from(*frame) > depth),
        );
    }

    /// A record was released: the buffers in it end.
    pub(super) fn lose_records(&mut self) {
        self.end_slices(|buffer| *buffer == Buffer::Record);
    }

    /// Something is stored on the stack that a write through a slice must not change: slices that may overlap these bytes
    /// end.
    pub(super) fn end_slices_of(&mut self, frame: usize, offset: i64, size: u64) {
        self.end_slices(|buffer| buffer.has(frame, offset, size));
    }

    /// An access through a slice may be an access to its buffer on the stack.
    pub(super) fn touch_buffer(&mut self, access: Access, buffer: Buffer) -> Check {
        let Buffer::Stack { frame, start, end } = buffer else { return Ok(()) };
        let (frame, start, size) = (usize::from(frame), i64::from(start), end.abs_diff(start).into());
        match access {
            Access::Read => self.note_read(frame, start, size),
            Access::Write => self.overwrite_bytes(frame, start, size),
        }
    }

    /// Helpers must not overwrite dynptrs.
    pub(super) fn check_no_dynptr(&self, span: &Span, frame: usize) -> Check {
        let range = span.offsets();
        let size = (range.max - range.min).unsigned_abs() + span.size;
        let Some(frame) = self.state.frame(frame) else { return Ok(()) };
        match parts(range.min, size).any(|(index, _)| frame.stack.slot(index).dynptr().is_some()) {
            true => reject(Cause::DynptrWritten(RegName(span.register))),
            false => Ok(()),
        }
    }

    /// A write to stack bytes destroys the dynptrs that they are part of. One with a reference must be released first
    /// (`destroy_if_dynptr_stack_slot`).
    pub(super) fn lose_dynptrs(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        let Some(found) = self.state.frame(frame) else { return Ok(()) };
        let touched = || parts(offset, size).filter_map(|(index, _)| found.stack.slot(index).dynptr());
        if touched().any(|dynptr| dynptr.reference != 0) {
            return reject(Cause::RecordOverwritten);
        }
        let ids: Vec<u32> = touched().map(|dynptr| dynptr.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let is_part = |slot: &Slot| slot.dynptr().is_some_and(|dynptr| ids.contains(&dynptr.id));
        if let Some(frame) = self.state.frame_mut(frame) {
            for slot in frame.stack.slots_mut().iter_mut().filter(|slot| is_part(slot)) {
                slot.overwrite(u8::MAX, Byte::Data);
            }
        }
        self.end_slices(|buffer| matches!(buffer, Buffer::Dynptr { id, .. } if ids.contains(id)));
        Ok(())
    }
}

/// Whether a value is a slice that may lie in a wanted buffer.
pub(super) fn may_be_buffer(value: &Value, wanted: impl Fn(&Buffer) -> bool) -> bool {
    matches!(value, Value::Pointer(Pointer { target: Target::Slice { buffer: Some(buffer), .. }, .. }) if wanted(buffer))
}

impl Buffer {
    /// Whether it overlaps bytes of a frame's stack, from `offset`.
    pub(super) fn has(&self, frame: usize, offset: i64, size: u64) -> bool {
        match *self {
            Self::Stack { frame: own, start, end } => {
                let after = offset.saturating_add_unsigned(size);
                usize::from(own) == frame && offset < i64::from(end) && i64::from(start) < after
            }
            Self::Record | Self::Dynptr { .. } => false,
        }
    }
}

impl Span {
    /// The buffer that this memory is for a slice, if its end must invalidate the slice.
    pub(super) fn as_buffer(&self) -> Option<Buffer> {
        match self.pointer.target {
            Target::Stack { frame } => {
                // No overflow: the place was checked to be within the stack.
                let (start, end) = self.reach();
                Some(Buffer::Stack { frame, start: start as i16, end: end as i16 })
            }
            // A slice with such a buffer may be in the packet as well: it ends when any record does.
            Target::Slice { buffer: Some(Buffer::Dynptr { .. }), .. } => Some(Buffer::Record),
            Target::Slice { buffer, .. } => buffer,
            Target::Record { .. } => Some(Buffer::Record),
            _ => None,
        }
    }
}

/// Dynptrs are aligned to 8 bytes, not to their size of 16.
fn check_aligned_to_slots(span: &Span) -> Check {
    check_aligned(&Span { size: 8, ..*span })
}
