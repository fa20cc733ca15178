//! Compilation of programs and chains.

use crate::ir::Source;
use paceline_isa::Code;
use paceline_spec::ProgramSpec;
use paceline_spec::graph::{Graph, Node};
use paceline_verifier::Verified;

use crate::native::checked;
use crate::native::error::CompileError;
use crate::native::links::Links;
use crate::native::select::{self, Part};
use crate::native::settings::{Architecture, OptLevel, Settings};
use crate::native::x64::{Mark, Relocation};

/// Alignment of functions as a power of 2: 16 bytes, the CPU's fetch granularity.
pub(crate) const ALIGNMENT: u8 = 4;

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
    /// reached`. The verdict is stored to each frame. `None` in checked and unverified code.
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

/// Compiles a verified program.
///
/// # Errors
/// [`CompileError`]; [`CompileError::Lack`] for a program that has no native code.
pub fn compile(verified: &Verified, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    if settings.checked {
        // Checked code exists to test the verifier, so it must not rely on its facts.
        return compile_checked((verified.program(), verified.code()), links, settings);
    }
    select::compile(&Source::verified(verified), links, settings)
}

/// Compiles a program that nobody verified. Unless the code is [checked](Settings::checked) nothing restricts its memory accesses, no load
/// is one from a context, and no pass runs, as passes rely on a proof: it is for programs over plain memory.
///
/// # Errors
/// As [`compile`].
pub fn compile_unverified(
    program: &ProgramSpec,
    code: &Code,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    if settings.checked {
        return compile_checked((program, code), links, settings);
    }
    let settings = Settings { opt_level: OptLevel::None, ..*settings };
    select::compile(&Source::unverified(program, code), links, &settings)
}

fn compile_checked(
    program: (&ProgramSpec, &Code),
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    match settings.architecture {
        Architecture::X86_64 => checked::compile(program, links, settings.features),
        Architecture::Arm64 => Err(CompileError::Lack(select::Lack::Checks)),
    }
}

/// Compiles a chain of programs, which are the graph's nodes, in order. The code has an entry for bursts only. With `counts` it counts the
/// results of each program.
///
/// # Errors
/// [`CompileError`]; [`CompileError::Lack`] for a chain that has no native code.
///
/// # Panics
/// If the number of programs differs from the number of the graph's nodes.
pub fn compile_chain(
    parts: &[&Part],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    assert_eq!(parts.len(), graph.nodes().len(), "each node is a program");
    select::compile_chain(parts, graph, counts, settings)
}
