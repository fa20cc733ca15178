//! Programs in SSA form after their passes.

use crate::internal::Internal;
use crate::ir::expand::{look_ups, loops};
use crate::ir::{BuildCause, BuildError, Graph, Module, Passes, Source, build_source, optimize_with_graphs};
use crate::native::error::{CompileError, FormError};
use crate::native::links::Links;
use crate::native::settings::OptLevel;
use crate::native::unsupported::Unsupported;

/// A program with the graphs of its functions.
pub(super) type Form = (Module, Vec<Graph>);

/// The form of a program after the passes that are asked for.
pub(super) fn form(source: &Source<'_>, links: &Links, passes: &Passes) -> Result<Form, CompileError> {
    let mut module = build_source(source).map_err(refused)?;
    let expanded = look_ups(&mut module, &|map| links.maps.get(map as usize)?.table());
    expanded.and_then(|()| loops(&mut module)).ok_or(Internal("an operation has no result"))?;
    match optimize_with_graphs(&mut module, passes) {
        Ok(graphs) => Ok((module, graphs)),
        Err(cause) => Err(FormError::new(cause, &module).into()),
    }
}

pub(super) fn passes(level: OptLevel) -> Passes {
    match level {
        OptLevel::None => Passes::none(),
        OptLevel::Full => Passes::default(),
    }
}

/// The error of a program that is not built.
fn refused(error: BuildError) -> CompileError {
    match error.cause {
        BuildCause::Internal(what) => what.into(),
        _ => Unsupported::Form { slot: error.slot as u32 }.into(),
    }
}
