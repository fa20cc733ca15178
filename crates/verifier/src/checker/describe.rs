//! Values in messages.

use paceline_isa::Reg;

use crate::domain::state::Value;
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};

/// A value's description.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Unset => "nothing".to_owned(),
        Value::Scalar(_) => "a number".to_owned(),
        Value::Iterator(_) => "an iterator".to_owned(),
        Value::Dynptr(_) => "a dynptr".to_owned(),
        Value::Pointer(pointer) if pointer.nullable => format!("a pointer to {} or null", pointer.target),
        Value::Pointer(pointer) => format!("a pointer to {}", pointer.target),
    }
}

/// An argument of the wrong kind.
pub(super) fn wrong_argument<T>(callee: &str, reg: Reg, wanted: &'static str, found: &Value) -> Check<T> {
    let nullable = found.pointer().is_some_and(|p| p.nullable);
    let cause =
        Cause::Argument { register: RegName(reg), helper: callee.to_owned(), wanted, found: describe(found) };
    if nullable { reject_with(cause, Hint::NullCheck) } else { reject(cause) }
}
