//! Code for machines that may be others, for tests.

use std::sync::Arc;

use crate::exec::Arena;
use paceline_compiler::internal::Internal;
use paceline_compiler::native::{Architecture, CompileError, Compiled, OptLevel, Part, Settings};
use paceline_maps::Map;
use paceline_spec::graph::Graph;
use paceline_verifier::Verified;

use super::links;
use crate::form::{Form, check};
use crate::load_error::EngineError;

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
) -> Result<Compiled, EngineError> {
    let settings = Settings { architecture, opt_level, verify_allocation: true, ..Settings::default() };
    let arena = Arena::global().map_err(|error| EngineError::Memory(error.to_string()))?;
    let linked = |(verified, maps): &(&Verified, Vec<Arc<Map>>)| {
        check(verified.program(), maps, Form::Proven(verified))?;
        Ok(links::links(verified.program(), maps, arena)?)
    };
    let links = parts.iter().map(linked).collect::<Result<Vec<_>, EngineError>>()?;
    let mut programs = parts.iter().map(|(verified, _)| *verified).zip(links);
    let Some(graph) = graph else {
        let Some((verified, links)) = programs.next() else {
            return Err(CompileError::from(Internal("there is no program")).into());
        };
        return Ok(paceline_compiler::native::compile(verified, &links, &settings)?);
    };
    let programs = programs.map(|(verified, links)| Part::new(verified, links, &settings));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    Ok(paceline_compiler::native::compile_chain(
        &programs.iter().collect::<Vec<_>>(),
        graph,
        false,
        &settings,
    )?)
}
