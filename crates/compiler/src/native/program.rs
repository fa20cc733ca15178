//! Compilation of programs and chains. Here a machine is chosen.

use crate::ir::Source;
use paceline_isa::Code;
use paceline_spec::ProgramSpec;
use paceline_spec::graph::Graph;
use paceline_verifier::Verified;

use crate::native::compiled::Compiled;
use crate::native::error::CompileError;
use crate::native::links::Links;
use crate::native::machine::{aarch64, x64};
use crate::native::select::{self, Part};
use crate::native::settings::{Architecture, OptLevel, Settings};

/// Compiles a verified program.
///
/// # Errors
/// [`CompileError`]; [`CompileError::Unsupported`] for a program that has no native code.
pub fn compile(verified: &Verified, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    compile_source(&Source::verified(verified), links, settings)
}

/// Compiles a program that nobody verified. Nothing restricts its memory accesses, no load is one from a context, and no pass runs, as
/// passes rely on a proof: it is for programs over plain memory.
///
/// # Errors
/// As [`compile`].
pub fn compile_unverified(
    program: &ProgramSpec,
    code: &Code,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    let settings = Settings { opt_level: OptLevel::None, ..*settings };
    compile_source(&Source::unverified(program, code), links, &settings)
}

fn compile_source(source: &Source<'_>, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    match settings.architecture {
        Architecture::X86_64 => select::compile::<x64::Assembler>(source, links, settings),
        Architecture::Arm64 => select::compile::<aarch64::Assembler>(source, links, settings),
    }
}

/// Compiles a chain of programs, which are the graph's nodes, in order. The code has an entry for bursts only. With `counts` it counts the
/// results of each program.
///
/// # Errors
/// [`CompileError`]; [`CompileError::Unsupported`] for a chain that has no native code.
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
    match settings.architecture {
        Architecture::X86_64 => select::compile_chain::<x64::Assembler>(parts, graph, counts, settings),
        Architecture::Arm64 => select::compile_chain::<aarch64::Assembler>(parts, graph, counts, settings),
    }
}
