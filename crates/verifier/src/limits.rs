//! Limits of programs and of their verification.

/// Maximum number of instructions of a program, and of simulated instructions (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const MAX_INSTRUCTIONS: usize = 1_000_000;

/// Maximum number of maps of a program (`MAX_USED_MAPS`).
pub const MAX_USED_MAPS: usize = 64;

/// Maximum number of steps of comparing and keeping states: a thousand per instruction of the limit, and a hundred times
/// the largest real programs.
pub const MAX_WORK: usize = 1_000_000_000;

/// Maximum number of bytes of kept states: a hundred times the largest real programs.
pub const MAX_BYTES: usize = 1 << 30;

/// Maximum number of functions, including the main program (`BPF_MAX_SUBPROGS`).
pub(crate) const MAX_FUNCTIONS: usize = 256;

/// Maximum number of active calls (`MAX_CALL_FRAMES`).
pub(crate) const MAX_FRAMES: usize = 8;

/// Offsets of 2^29 and more are refused everywhere (`BPF_MAX_VAR_OFF`).
pub(crate) const MAX_OFFSET: i64 = 1 << 29;

/// Options of [`verify`](crate::verify()), set one after the other: `Options::default().max_instructions(10_000)`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of simulated instructions.
    pub max_instructions: usize,
    /// Maximum number of steps of comparing and keeping states; see [`Stats::work`](crate::Stats::work). The kernel has no such limit.
    pub max_work: usize,
    /// Maximum number of bytes of kept states. The kernel is limited by its memory only.
    pub max_bytes: usize,
    /// Whether a path ends only at an identical state: slower, but then the observer sees, at each instruction, a state
    /// that covers every run. For tests.
    pub exact: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_instructions: MAX_INSTRUCTIONS, max_work: MAX_WORK, max_bytes: MAX_BYTES, exact: false }
    }
}

impl Options {
    /// Sets the maximum number of simulated instructions.
    #[must_use]
    pub const fn max_instructions(mut self, instructions: usize) -> Self {
        self.max_instructions = instructions;
        self
    }

    /// Sets the maximum number of steps that comparing and keeping states may take; see [`Stats::work`](crate::Stats::work).
    #[must_use]
    pub const fn max_work(mut self, steps: usize) -> Self {
        self.max_work = steps;
        self
    }

    /// Sets the maximum size of all kept states.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Ends paths only at equal states; see [`exact`](Self#structfield.exact).
    #[must_use]
    pub const fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }
}
