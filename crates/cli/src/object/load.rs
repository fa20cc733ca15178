//! From an object to its maps and programs: the one way of all commands.

use paceline::contents::{ContentsError, MapContents, SavedMaps};
use paceline::diagnosis::Diagnosis;
use paceline::{Collection, Engine, LoadOptions, Object, ProgramError};

use super::args::ObjectArgs;
use super::error::ObjectError;
use super::opener::Opener;
use super::program::NamedProgramError;
use super::set::{check_set, variables_set};
use crate::common::failure::Failure;
use crate::maps;

/// Options for loading objects.
pub(crate) fn load_options(engine: Engine, args: &ObjectArgs, cpus: usize) -> LoadOptions {
    let ObjectArgs { map_memory, look_ahead, budget, .. } = *args;
    LoadOptions::default()
        .budget(budget)
        .engine(engine)
        .look_ahead(look_ahead)
        .map_memory(map_memory)
        .cpus(cpus)
        .leaving_unsupported()
}

/// Sets the variables that files and `--set` name, makes the maps, and fills them: with those of an earlier run first, then `given`, then
/// those of the command line.
pub(crate) fn load(
    opener: &Opener,
    name: &str,
    mut object: Object,
    given: Vec<MapContents>,
    options: &LoadOptions,
    unverified: bool,
) -> Result<Collection, Failure> {
    opener.check_shapes([&object].into_iter())?;
    let mut files = match &opener.args.restore_maps {
        Some(path) => maps::restored(&SavedMaps::read(path)?, &object, None)?,
        None => Vec::new(),
    };
    files.extend(given);
    files.extend(maps::read_files(&opener.args.files())?);
    check_set(&opener.args.set, [&object].into_iter())?;
    files.extend(variables_set(&opener.args.set, &object));
    object.set_variables(&files)?;
    let collection = object.load(options).map_err(|source| ObjectError::setup(name, source))?;
    let set = collection.set_elements(&files, !unverified);
    set.map_err(|error| diagnosed(name, &collection, error))?;
    Ok(collection)
}

/// A map file's error, as a diagnosis if the file names a program that is not safe.
fn diagnosed(name: &str, collection: &Collection, error: ContentsError) -> Failure {
    let Some((map, index, ProgramError::Refused(refused))) = error.no_program() else { return error.into() };
    let diagnosis = Diagnosis::new(name, collection.object(), refused).of_entry(map, index);
    NamedProgramError::Refused(Box::new(diagnosis)).into()
}
