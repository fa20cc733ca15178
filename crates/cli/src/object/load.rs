//! From an object to its maps and programs: the one way of all commands.

use paceline::{Collection, Engine, LoadOptions, NoProgram, Object};
use paceline_diagnosis::Diagnosis;

use super::args::ObjectArgs;
use super::error::ObjectError;
use super::opener::Opener;
use super::program::{ProgramError, program_of};
use crate::common::failure::Failure;
use crate::maps::{self, JsonFile, MapFileError};

/// Options for loading objects.
pub(crate) fn load_options(budget: u64, engine: Engine, args: &ObjectArgs, cpus: usize) -> LoadOptions {
    let ObjectArgs { map_memory, look_ahead, .. } = *args;
    LoadOptions::default()
        .budget(budget)
        .engine(engine)
        .look_ahead(look_ahead)
        .map_memory(map_memory)
        .cpus(cpus)
}

/// Sets the variables that files name, makes the maps, and fills them; `restored` come before those of the command line.
pub(crate) fn load(
    opener: &Opener,
    name: &str,
    mut object: Object,
    restored: Vec<JsonFile>,
    options: &LoadOptions,
    unverified: bool,
) -> Result<Collection, Failure> {
    opener.check_shapes([&object].into_iter())?;
    let mut files = restored;
    files.extend(maps::read_files(&opener.args.files())?);
    maps::set_variables(&files, &mut object)?;
    let collection = object.load(options).map_err(|source| ObjectError::setup(name, source))?;
    let load = |program: &str| program_of(&collection, Some(program), unverified);
    maps::set_elements(&files, &collection, &load).map_err(|error| diagnosed(name, &collection, error))?;
    Ok(collection)
}

/// A map file's error, as a diagnosis if the file names a program that is not safe.
fn diagnosed(name: &str, collection: &Collection, error: MapFileError) -> Failure {
    let Some((map, index, NoProgram::Refused(refused))) = error.no_program() else { return error.into() };
    let diagnosis = Diagnosis::new(name, collection.object(), refused).of_entry(map, index);
    ProgramError::Refused(Box::new(diagnosis)).into()
}
