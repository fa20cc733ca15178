//! Verdicts of the verifier and the kernel, and whether the verifier's facts hold at run time.

mod hostile;
mod judge;
mod locks;
mod soundness;

pub use hostile::{arbitrary, mutated};
pub use judge::{Judge, Judgement, Ran, reason_class};
pub use locks::{LockTrial, try_locks};
pub use soundness::{States, Witness};
