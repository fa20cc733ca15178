//! Results of a compilation.

use paceline_spec::graph::Node;

use crate::native::code::{Mark, Relocation};

/// Position-independent code, once its relocations are applied: it must be within reach of their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The instructions. Their address must be a multiple of 16.
    pub bytes: Vec<u8>,
    /// Relative references to the runtime, which depend on the code's address.
    pub relocations: Vec<Relocation>,
    /// Offset in bytes of the entry for packets, in a chain of the entry for bursts. Checked code has this entry only, as `extern
    /// "C" fn(r1, r2, &mut Run) -> r0`.
    pub entry: u32,
    /// Offset of the entry for tail calls; the same as `entry` in a chain.
    pub tail_entry: u32,
    /// Offset of the entry for bursts of one or more frames: `extern "C" fn(first frame, end, x3, x4, x5, &mut Host) -> frame
    /// reached`. The verdict is stored to each frame. `None` in unverified code.
    pub burst_entry: Option<u32>,
    /// Functions by increasing offset, the main function first.
    pub functions: Vec<CompiledFunction>,
    /// Offsets of the code of slots ([`Mark::tag`]), increasing.
    pub marks: Vec<Mark>,
    /// Code size.
    pub stats: Stats,
}

/// Location of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledFunction {
    /// The program, by its node in the graph.
    pub node: Node,
    /// The function's first slot.
    pub slot: usize,
    /// Whether it is a main program inlined into a loop over a burst.
    pub burst: bool,
    /// Offset from the start of the code in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub len: u32,
}

/// Code size statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Reachable instructions.
    pub instructions: usize,
    /// Unreachable instructions, for which no code is emitted.
    pub dropped: usize,
    /// Code size in bytes.
    pub bytes: usize,
}
