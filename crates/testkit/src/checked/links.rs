//! Addresses and offsets that checked code is linked with.

/// Functions that checked code calls, each `extern "C" fn(&mut Run, slot: u64, pointer: u64) -> u64`. They can read and change `r0`
/// to `r5` in the run. A result of 0 ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    /// Checks the access of an instruction through a pointer, and returns the address to use. For a load of a context field that is
    /// the address of [`RunOffsets::value`], which holds the field's value as 64 bits. For a store to one, the code puts the value
    /// there before the call, and the call makes the store.
    pub(super) access: u64,
    /// Executes an instruction that is no plain computation: returns 1 to continue, 2 to leave the function or, for `may_goto`, to
    /// jump. A helper that calls a callback puts it into [`RunOffsets::callback`].
    pub(super) execute: u64,
    /// Called when a function returns: returns 1, and may change [`RunOffsets::callback`].
    pub(super) leave: u64,
    /// Called when the budget is exhausted: returns 0.
    pub(super) exhausted: u64,
    /// Offsets of the run's fields.
    pub(super) run: RunOffsets,
}

/// Offsets in bytes into the state of a checked run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunOffsets {
    /// The native stack pointer to restore when the run ends.
    pub(super) stack_pointer: i32,
    /// Remaining instruction budget, 64 bits.
    pub(super) budget: i32,
    /// Value of a context field, 64 bits.
    pub(super) value: i32,
    /// `r0` to `r5`, 64 bits each.
    pub(super) registers: i32,
    /// `r10` of the running function.
    pub(super) frame_pointer: i32,
    /// 64 bits: slot of the next callback that a helper calls, or no valid slot when the helper returns.
    pub(super) callback: i32,
}
