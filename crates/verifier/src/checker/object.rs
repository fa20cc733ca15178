//! Kernel objects as arguments (`check_func_arg_reg_off` in `kernel/bpf/verifier.c`).

use paceline_isa::Reg;
use paceline_spec::ObjectKind;

use super::describe::wrong_argument;
use super::registers::Checker;
use crate::domain::state::{Pointer, Target, Value};
use crate::error::Check;

impl Checker<'_> {
    /// An object of a kind, unmodified and known not to be null. Returns the id of its reference.
    pub(super) fn check_object(
        &self,
        callee: &str,
        reg: Reg,
        value: &Value,
        wanted: &'static str,
        is_wanted: impl Fn(ObjectKind) -> bool,
    ) -> Check<u32> {
        match value {
            Value::Pointer(pointer @ Pointer { target: Target::Object(kind), nullable: false, .. })
                if is_wanted(*kind) && pointer.offset() == Some(0) =>
            {
                Ok(pointer.id)
            }
            other => wrong_argument(callee, reg, wanted, other),
        }
    }

    /// A socket; its common part suffices.
    pub(super) fn check_socket(&self, callee: &str, reg: Reg, value: &Value) -> Check<u32> {
        self.check_object(callee, reg, value, "a socket", ObjectKind::is_socket)
    }
}
