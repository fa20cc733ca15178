//! Programs as they would run.

use paceline::{Engine, LoadOptions, Object, ProgramSpec, VerifiedProgram};

use super::args::DumpArgs;
use crate::common::failure::Failure;
use crate::object::{NamedProgramError, ObjectError};

/// Programs with their proofs, on an engine.
pub(super) fn loaded(
    engine: Engine,
    args: &DumpArgs,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<Vec<VerifiedProgram>, Failure> {
    let options = LoadOptions::default().engine(engine).look_ahead(args.how.look_ahead);
    let collection = object.load(&options).map_err(|source| ObjectError::setup(name, source))?;
    let load = |spec: &&ProgramSpec| {
        let program = collection.program(Some(&spec.name));
        Ok(program.map_err(|error| NamedProgramError::new(name, collection.object(), error))?)
    };
    programs.iter().map(load).collect()
}
