//! From an object to its maps and programs: the one way of all commands.

use paceline::{
    Collection, Engine, Limits, LoadOptions, NoProgram, Object, Program, Refused, VerifiedProgram,
};

use super::Opener;
use crate::failure::Failure;
use crate::maps::{self, JsonFile, MapFailure};
use crate::verify::Diagnosis;

/// How objects are loaded, with maps of so many bytes each at most.
pub(crate) fn load_options(budget: u64, engine: Engine, map_memory: u64, cpus: usize) -> LoadOptions {
    LoadOptions { budget, engine, limits: Limits { memory: map_memory, cpus } }
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
    let collection = object.load(options);
    let collection =
        collection.map_err(|source| Failure::Setup { name: name.to_owned(), source: Box::new(source) })?;
    let load = |program: &str| program_of(&collection, Some(program), unverified);
    maps::set_elements(&files, &collection, &load)
        .map_err(|failure| diagnosed(name, &collection, failure))?;
    Ok(collection)
}

/// A program of a collection.
pub(crate) fn program_of(
    collection: &Collection,
    name: Option<&str>,
    unverified: bool,
) -> Result<Program, NoProgram> {
    match unverified {
        true => collection.program_unverified(name),
        false => collection.program(name).map(VerifiedProgram::into_program),
    }
}

/// A map file's failure, with a diagnosis if it names a program that is not safe.
fn diagnosed(name: &str, collection: &Collection, failure: Failure) -> Failure {
    if let Failure::Map { source, .. } = &failure
        && let MapFailure::Program { place, index, source } = &**source
        && let NoProgram::Refused(refused) = &**source
    {
        let refused: &Refused = refused;
        let diagnosis = Diagnosis::new(name, collection.object(), refused);
        return Failure::Refused(Box::new(diagnosis.of_entry(&place.map, *index)));
    }
    failure
}
