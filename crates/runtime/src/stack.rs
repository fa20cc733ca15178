//! Sizes of the interpreters' stack.

/// Bytes of stack of each function in the interpreters (`MAX_BPF_STACK`).
pub const STACK_FRAME: usize = 512;
/// Most functions of one program active at once (`MAX_CALL_FRAMES`).
pub const MAX_FRAMES: usize = 8;
