//! Dynptrs: sized pointers on the stack, and slices of their memory (`destroy_if_dynptr_stack_slot`, `check_special_kfunc`
//! in `kernel/bpf/verifier.c`).

use super::registers::Transformer;
use crate::domain::access::Span;
use crate::domain::state::{
    Buffer, Byte, Dynptr, DynptrMemory, Lent, Lost, Slot, Stack, Target, Value, parts,
};
use crate::error::{Check, invariant};

impl Transformer<'_> {
    /// Prepares the place for a new dynptr; an existing one is destroyed.
    pub(super) fn clear_place(&mut self, span: &Span) -> Check {
        let frame = frame_of(span)?;
        self.end_slices_of(frame, span.offsets().min, span.size);
        self.overwrite_stack(span, frame)
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
    pub(super) fn make_dynptr(&mut self, span: &Span, memory: DynptrMemory, reference: u32) -> Check {
        let id = self.records.new_id();
        let start = span.offsets().min;
        let frame = self.frame_mut(frame_of(span)?)?;
        for (offset, first) in [(start, true), (start + 8, false)] {
            frame.stack.slot_mut(Stack::place(offset).0).place_dynptr(Dynptr {
                id,
                first,
                memory,
                reference,
            });
        }
        Ok(())
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

    /// Turns slices that may lie in certain buffers into numbers. The kernel does not invalidate them.
    fn end_slices(&mut self, is_gone: impl Fn(&Buffer) -> bool) {
        let ends = |value: &Value| value.may_be_buffer(&is_gone);
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

    /// A write to stack bytes destroys the dynptrs that they are part of (`destroy_if_dynptr_stack_slot`).
    pub(super) fn lose_dynptrs(&mut self, frame: usize, offset: i64, size: u64) -> Check {
        self.check().check_no_record(frame, offset, size)?;
        let found = self.check().frame(frame)?;
        let touched = parts(offset, size).filter_map(|(index, _)| found.stack.slot(index).dynptr());
        let ids: Vec<u32> = touched.map(|dynptr| dynptr.id).collect();
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

/// The frame of a dynptr's place.
fn frame_of(span: &Span) -> Check<usize> {
    let frame = match span.pointer.target {
        Target::Stack { frame } => Some(usize::from(frame)),
        _ => None,
    };
    invariant(frame, "a new dynptr is on the stack")
}
