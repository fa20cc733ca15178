//! What programs are made of.

/// Relative frequency of each kind of step; 0 excludes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Arithmetic, moves, negations, byte swaps, 64-bit constants.
    pub arithmetic: u32,
    /// Conditional jumps forward, short and long.
    pub jumps: u32,
    /// Loads and stores of the state's memory and of the stack.
    pub memory: u32,
    /// Atomic operations on both.
    pub atomics: u32,
    /// Maximum number of steps.
    pub steps: usize,
}

impl Default for Mix {
    fn default() -> Self {
        Self { arithmetic: 10, jumps: 2, memory: 4, atomics: 2, steps: 40 }
    }
}
