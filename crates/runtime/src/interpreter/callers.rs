//! Functions of the plain interpreter that wait for a called one.

use crate::rounds::Rounds;

/// Return address of a called function, and its caller's callee-saved registers.
pub(crate) struct Caller {
    pub(crate) slot: usize,
    pub(crate) callee_saved: [u64; 4],
    pub(crate) rounds_left: u32,
    /// The helper that called the function, if one did.
    pub(crate) calling_back: Option<CallingBack>,
}

/// An active call of a helper that calls a function of the program.
pub(crate) struct CallingBack {
    pub(crate) function: usize,
    pub(crate) rounds: Rounds,
}
