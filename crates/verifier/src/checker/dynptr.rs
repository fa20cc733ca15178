//! Dynptrs as arguments (`process_dynptr_func` in `kernel/bpf/verifier.c`).

use paceline_isa::Reg;
use paceline_spec::kfunc::DYNPTR_BYTES;

use super::describe::wrong_argument;
use super::registers::Checker;
use super::span::check_aligned;
use crate::domain::access::{Access, Span};
use crate::domain::state::{Dynptr, DynptrMemory, Pointer, Stack, Target, Value};
use crate::error::{Cause, Check, RegName, reject};

impl Checker<'_> {
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

    /// The place for a new dynptr; an existing one will be destroyed.
    pub(super) fn check_new_dynptr(&mut self, callee: &str, register: Reg, value: &Value) -> Check<Span> {
        Ok(self.dynptr_span(callee, register, value)?.0)
    }

    /// A dynptr to a record, at its place.
    pub(super) fn check_record_dynptr(&mut self, callee: &str, register: Reg, value: &Value) -> Check<u32> {
        match self.check_dynptr(callee, register, value)? {
            Dynptr { memory: DynptrMemory::Record, reference, .. } => Ok(reference),
            _ => wrong_argument(callee, register, "a dynptr to a ring buffer record", value),
        }
    }
}

/// Dynptrs are aligned to 8 bytes, not to their size of 16.
fn check_aligned_to_slots(span: &Span) -> Check {
    check_aligned(&Span { size: 8, ..*span })
}
