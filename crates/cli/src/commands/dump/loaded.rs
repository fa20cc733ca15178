//! Programs as they would run.

use paceline::{Engine, LoadOptions, Object, Program, ProgramSpec};

use crate::common::failure::Failure;
use crate::object::{ObjectError, ProgramError};

/// Programs as native code.
pub(super) fn loaded(
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<Vec<Program>, Failure> {
    let options = LoadOptions::default().engine(Engine::Jit);
    let collection = object.load(&options).map_err(|source| ObjectError::setup(name, source))?;
    let load = |spec: &&ProgramSpec| {
        let program = collection.program(Some(&spec.name));
        Ok(program.map_err(|error| ProgramError::new(name, collection.object(), error))?.into_program())
    };
    programs.iter().map(load).collect()
}
