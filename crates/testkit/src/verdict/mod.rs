//! What the verifier and the kernel say of programs, and whether what was said holds when they run.

mod hostile;
mod judge;
mod soundness;

pub use hostile::{arbitrary, mutated};
pub use judge::{Judge, Judgement, Ran, reason_class};
pub use soundness::{States, Witness};
