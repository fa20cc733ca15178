//! Programs as they would run.

use paceline::{Engine, LoadOptions, Object, Program, ProgramSpec};

use super::args::DumpArgs;
use crate::common::failure::Failure;
use crate::object::{ObjectError, ProgramError};

/// Programs as native code.
pub(super) fn loaded(
    args: &DumpArgs,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<Vec<Program>, Failure> {
    let options = LoadOptions::default().engine(Engine::Jit).look_ahead(args.how.look_ahead);
    let collection = object.load(&options).map_err(|source| ObjectError::setup(name, source))?;
    let load = |spec: &&ProgramSpec| {
        let program = collection.program(Some(&spec.name));
        Ok(program.map_err(|error| ProgramError::new(name, collection.object(), error))?.into_program())
    };
    programs.iter().map(load).collect()
}
