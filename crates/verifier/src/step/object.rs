//! Kernel objects: field reads, acquire and release (`check_sock_access`, `check_ptr_to_btf_access`,
//! `check_func_arg_reg_off` in `kernel/bpf/verifier.c`).

use paceline_isa::Reg;
use paceline_spec::{ObjectField, ObjectKind};

use super::helper::wrong_argument;
use super::memory::{Access, Span};
use crate::domain::number::Number;
use crate::domain::state::{Pointer, Reference, ReferenceKind, Target, Value};
use crate::error::{Cause, Check, RegName, reject};
use crate::walk::Walk;

impl Span {
    /// The accessed field of an object; the offset must be constant.
    pub(super) fn object_field(&self, kind: ObjectKind) -> Check<&'static ObjectField> {
        let range = self.offsets();
        if range.min != range.max {
            return reject(Cause::UnboundedOffset(RegName(self.register), self.pointer.target));
        }
        let write = self.access == Access::Write;
        let offset = u64::try_from(range.min).ok();
        match offset.and_then(|offset| kind.field(offset, self.size, write)) {
            Some(field) => Ok(field),
            None => reject(Cause::Object { kind, offset: range.min, size: self.size, write }),
        }
    }
}

/// The result of a load from an object (`btf_struct_access`).
pub(super) fn load_object(span: &Span, kind: ObjectKind) -> Check<Value> {
    let to = span.object_field(kind)?.to;
    let number = || Value::number(Number::unsigned(span.size as u32 * 8));
    Ok(to.map_or_else(number, |kind| Value::Pointer(Pointer::to(Target::Object(kind)))))
}

impl Walk<'_> {
    /// Adds a reference that the running call acquires.
    pub(super) fn add_reference(&mut self, id: u32, kind: ReferenceKind) {
        self.state.references.push(Reference { id, slot: self.slot as u32, kind });
    }

    /// An object that is acquired, or null.
    pub(super) fn acquire(&mut self, kind: ObjectKind) -> Value {
        let id = self.new_id();
        self.add_reference(id, ReferenceKind::Object(kind));
        Value::Pointer(Pointer { nullable: true, id, ..Pointer::to(Target::Object(kind)) })
    }

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
