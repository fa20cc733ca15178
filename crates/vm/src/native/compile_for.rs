//! Code for machines that may be others, for tests.

use std::sync::Arc;

use paceline_exec::Arena;
use paceline_graph::Graph;
use paceline_jit::{Architecture, CompileError, Compiled, OptLevel, Settings};
use paceline_maps::Map;
use paceline_verifier::Verified;

use super::links;
use crate::form::{Form, check};
use crate::load_error::LoadError;

/// Code of the first program, or of a chain of all if there is a graph, for a machine that may be another one: it is neither placed nor
/// run.
///
/// # Errors
/// As [`Program::load`](crate::Program::load). An error of a chain names no program.
///
/// # Panics
/// If the number of programs differs from the number of the graph's nodes.
pub fn compile_for(
    architecture: Architecture,
    opt_level: OptLevel,
    parts: &[(&Verified, Vec<Arc<Map>>)],
    graph: Option<&Graph>,
) -> Result<Compiled, LoadError> {
    let settings = Settings { architecture, opt_level, verify_allocation: true, ..Settings::default() };
    let arena = Arena::global().map_err(|error| LoadError::Memory(error.to_string()))?;
    let mut programs = Vec::new();
    for (verified, maps) in parts {
        check(verified.program(), maps, Form::Proven(verified))?;
        programs.push((*verified, links::links(verified.program(), maps, arena)));
    }
    let programs: Vec<_> = programs.iter().map(|(verified, links)| (*verified, links)).collect();
    let compiled = match (graph, programs.first()) {
        (None, Some((verified, links))) => paceline_jit::compile(verified, links, &settings),
        (Some(graph), _) => {
            paceline_jit::compile_chain(&programs, graph, &settings).map_err(|(_, error)| error)
        }
        (None, None) => Err(CompileError::Internal("there is no program")),
    };
    Ok(compiled?)
}
