//! Refusals as data: the cause, a hint how to avoid it, and where the walk was.

mod cause;
mod hint;
mod problem;
mod refusal;

pub use cause::{Cause, RegName};
pub use hint::Hint;
pub(crate) use problem::{Check, Problem, invariant, reject, reject_with};
pub use refusal::{Branch, Refusal};
