//! Arguments of global functions, against the types of the parameters.

use paceline_isa::Reg;

use super::arguments::Effect;
use super::describe::wrong_argument;
use super::registers::Checker;
use super::span::check_context_pointer;
use crate::domain::access::{Access, Span};
use crate::domain::state::{Dynptr, DynptrMemory, Pointer, Target, Value};
use crate::env::Parameter;
use crate::error::{Cause, Check, Hint, RegName, reject_with};
use crate::records::loans::{self, Loan};

impl Checker<'_> {
    /// Checks an argument against a parameter: function index and number.
    pub(crate) fn check_parameter(
        &mut self,
        place: loans::Parameter,
        name: &str,
        reg: Reg,
        parameter: Parameter,
    ) -> Check<Option<Effect>> {
        let value = self.read(reg)?;
        match (parameter, value) {
            (Parameter::Number, Value::Scalar(_)) => Ok(None),
            (Parameter::Number, other) => wrong_argument(name, reg, "a number", &other),
            (Parameter::Context, Value::Pointer(p)) if p.target == Target::Context => {
                check_context_pointer(reg, &p).map(|()| None)
            }
            (Parameter::Context, other) => wrong_argument(name, reg, "the context", &other),
            (Parameter::Memory { nullable, .. }, value) if value.is_null() => {
                self.mark_precise(&value);
                if nullable {
                    return Ok(None);
                }
                wrong_argument(name, reg, "a pointer that is not null", &value)
            }
            (Parameter::Memory { size, nullable }, Value::Pointer(pointer)) => {
                if pointer.nullable && !nullable {
                    return reject_with(Cause::MayBeNull(RegName(reg), pointer.target), Hint::NullCheck);
                }
                // The function checks for null itself.
                let effect =
                    self.check_lent(name, reg, &Pointer { nullable: false, ..pointer }, u64::from(size))?;
                self.note_loan(place, reg, &pointer);
                Ok(effect)
            }
            (Parameter::Memory { .. }, other) => wrong_argument(name, reg, "a pointer to memory", &other),
            (Parameter::Dynptr, value) => {
                let dynptr = self.check_dynptr(name, reg, &value)?;
                self.note_lent_dynptr(place, &dynptr);
                Ok(None)
            }
        }
    }

    /// A memory argument, which must be readable and writable.
    fn check_lent(
        &mut self,
        name: &str,
        register: Reg,
        pointer: &Pointer,
        size: u64,
    ) -> Check<Option<Effect>> {
        let span = |access| Span { register, pointer: *pointer, offset: 0, size, access };
        for span in [span(Access::Read), span(Access::Write)] {
            match pointer.target {
                Target::Stack { frame } => {
                    let frame = usize::from(frame);
                    self.check_stack(&span, frame)?;
                    let (start, reach) = span.extent();
                    self.note_read(frame, start, reach)?;
                }
                Target::MapValue(_) | Target::Packet { .. } | Target::Memory { .. } => {
                    self.check_span(&span)?
                }
                _ => return wrong_argument(name, register, "a pointer to memory", &Value::Pointer(*pointer)),
            }
        }
        Ok(matches!(pointer.target, Target::Stack { .. }).then(|| Effect::Write(span(Access::Write))))
    }

    /// Records the memory argument of a call; the callee's requirements are known only after the whole walk.
    fn note_loan(&mut self, parameter: loans::Parameter, register: Reg, pointer: &Pointer) {
        let span = Span { register, pointer: *pointer, offset: 0, size: 1, access: Access::Read };
        let in_packet = pointer.is_packet();
        let alignment = [8, 4, 2].into_iter().find(|&size| !in_packet && span.is_multiple_of(size.into()));
        let from = match pointer.target {
            Target::Memory { lent: Some(lent), .. } => {
                Some((self.records.roots.current().function(), lent.parameter))
            }
            _ => None,
        };
        self.records
            .loans
            .lend(parameter, Loan { slot: self.slot, alignment: alignment.unwrap_or(1), in_packet, from });
    }

    /// Records the memory of a dynptr argument.
    fn note_lent_dynptr(&mut self, parameter: loans::Parameter, dynptr: &Dynptr) {
        let from = match dynptr.memory {
            DynptrMemory::Lent(parameter) => Some((self.records.roots.current().function(), parameter)),
            _ => None,
        };
        let in_packet = dynptr.memory == DynptrMemory::Packet;
        self.records.loans.lend(parameter, Loan { slot: self.slot, alignment: 1, in_packet, from });
    }
}
