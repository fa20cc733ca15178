//! Collections: the maps of an object, made, and its programs, verified.

use std::sync::Arc;

use paceline::{Collection, LoadOptions, ProgramError, SetupError};

use crate::bound::Bound;
use crate::call;
use crate::handles::Table;
use crate::kinds::{engine, engine_number, paceline_engine};
use crate::map::Held;
use crate::object::{OBJECTS, of_refused};
use crate::opaque::{paceline_collection, paceline_map, paceline_object, paceline_program};
use crate::raw::{Given, Text, given};
use crate::status::{Failure, Report, paceline_status};
use crate::told::ErrorOut;

pub(crate) static COLLECTIONS: Table<Arc<Collection>, paceline_collection> = Table::new();

/// How an object is loaded. All zero, apart from the size, is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_load_options {
    /// sizeof(struct paceline_load_options)
    pub size: usize,
    /// One of enum paceline_engine, for verified programs.
    pub engine: u32,
    /// Number of CPUs (workers) that have values of their own in per-CPU maps; 0 for 1.
    pub cpus: u32,
    /// Maximum number of bytes of one map; 0 for 4 GiB.
    pub map_memory: u64,
    /// Instructions that a program may run for one packet, on engines that count them; 0 for the default.
    pub budget: u64,
    /// A collection that this one takes the place of: maps of the same name and shape are kept, with their contents. Null for none.
    pub replaces: *const paceline_collection,
}

given!(paceline_load_options);

pub(crate) fn options(given: &paceline_load_options) -> Result<LoadOptions, Failure> {
    let mut options = LoadOptions::default().engine(engine(given.engine)?);
    if given.cpus > 0 {
        options = options.cpus(given.cpus as usize);
    }
    if given.map_memory > 0 {
        options = options.map_memory(given.map_memory);
    }
    Ok(if given.budget > 0 { options.budget(given.budget) } else { options })
}

/// Makes the maps of an object and fills them with the values that it gives. `options` may be null. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_load(
    object: *const paceline_object,
    options: Given<paceline_load_options>,
    error: ErrorOut,
) -> *mut paceline_collection {
    call::handle(error, || {
        let opened = OBJECTS.get(object)?;
        let given = options.optional()?;
        let replaces = given.map(|given| given.replaces).filter(|handle| !handle.is_null());
        let options = given.as_ref().map_or_else(|| Ok(LoadOptions::default()), self::options)?;
        let loaded = match replaces {
            None => opened.object.load(&options),
            Some(before) => {
                let before = COLLECTIONS.get(before)?;
                opened.object.load_after(&options, &before).map(|(collection, _)| collection)
            }
        };
        COLLECTIONS.give(Arc::new(loaded.map_err(|error| of_setup(&error))?))
    })
}

/// Frees a collection. Programs and maps that were taken from it stay. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_free(collection: *mut paceline_collection) -> paceline_status {
    call::plain_status(|| COLLECTIONS.free(collection))
}

/// The engine that programs of the collection run on, one of enum paceline_engine other than PACELINE_ENGINE_BEST.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_engine(collection: *const paceline_collection) -> paceline_engine {
    call::plain(paceline_engine::Best, || Ok(engine_number(COLLECTIONS.get(collection)?.engine())))
}

/// A program, verified and bound to the collection's maps. `name` may be null if there is only one. Programs that the object gives to
/// the program arrays it uses are verified and put there. Null on failure: PACELINE_STATUS_REFUSED has the instruction and
/// the source line in the error's details.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_program(
    collection: *const paceline_collection,
    name: Text,
    error: ErrorOut,
) -> *mut paceline_program {
    call::handle(error, || {
        let collection = COLLECTIONS.get(collection)?;
        let program = collection.program(name.optional()?).map_err(|error| of_no_program(&error))?;
        let config = run_config(&collection, &program.spec().name)?;
        Bound::give(Bound::verified(program, config))
    })
}

/// A program without a proof, for the plain interpreter, which checks every operation at run time: a wrong one makes the call that runs it
/// PACELINE_STATUS_FAULT. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_program_unverified(
    collection: *const paceline_collection,
    name: Text,
    error: ErrorOut,
) -> *mut paceline_program {
    call::handle(error, || {
        let collection = COLLECTIONS.get(collection)?;
        let program =
            collection.program_unverified(name.optional()?).map_err(|error| of_no_program(&error))?;
        let config = run_config(&collection, &program.spec().name)?;
        Bound::give(Bound::unverified(program, config))
    })
}

/// The map of a name. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_map(
    collection: *const paceline_collection,
    name: Text,
    error: ErrorOut,
) -> *mut paceline_map {
    call::handle(error, || {
        let collection = COLLECTIONS.get(collection)?;
        let name = name.required("the name of a map")?;
        let map = collection.json_map(name).ok_or_else(|| no_map(&collection, name))?;
        Held::give(map)
    })
}

/// A new map such as a map of maps holds, to be put there by the number in its paceline_map_info. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_collection_inner_map(
    collection: *const paceline_collection,
    outer: *const paceline_map,
    error: ErrorOut,
) -> *mut paceline_map {
    call::handle(error, || {
        let collection = COLLECTIONS.get(collection)?;
        let outer = crate::map::MAPS.get(outer)?;
        let inner = collection.make_inner(outer.map()).map_err(|error| of_setup(&error.into()))?;
        Held::give_plain(inner)
    })
}

fn run_config(collection: &Collection, program: &str) -> Result<paceline::chain::RunConfig, Failure> {
    let config = collection.object().run_config(program);
    config.map_err(|error| Failure::of(paceline_status::Object, &error))
}

fn no_map(collection: &Collection, name: &str) -> Failure {
    let missing = collection.missing().iter().find(|missing| missing.name == name);
    if let Some(missing) = missing {
        return of_setup(&missing.error);
    }
    let names: Vec<_> = collection.object().maps().iter().map(|map| map.name.as_str()).collect();
    Failure::told(Report {
        status: Some(paceline_status::Map),
        message: format!("no map {name} (available: {})", names.join(", ")),
        map: Some(name.to_owned()),
        ..Report::default()
    })
}

pub(crate) fn of_setup(error: &SetupError) -> Failure {
    let mut report = Report { message: paceline::with_causes(error), ..Report::default() };
    report.status =
        Some(if error.is_unsupported() { paceline_status::Unsupported } else { paceline_status::Map });
    match error {
        SetupError::Map(create) => {
            report.map = Some(create.name.clone());
            report.error_number = create.errno().0.into();
        }
        SetupError::Fill { map, source } => {
            report.map = Some(map.clone());
            report.error_number = source.errno.0.into();
            report.index = Some(source.index as u64);
        }
        SetupError::Inner { map, .. }
        | SetupError::NoMap { map, .. }
        | SetupError::Pinned { map, .. }
        | SetupError::Differs { map, .. } => report.map = Some(map.clone()),
        _ => {}
    }
    Failure::told(report)
}

pub(crate) fn of_no_program(error: &ProgramError) -> Failure {
    if let ProgramError::Refused(refused) = error {
        return of_refused(refused);
    }
    let status = match error {
        ProgramError::Maps { .. } => paceline_status::Map,
        error if error.is_unsupported() => paceline_status::Unsupported,
        _ => paceline_status::NoProgram,
    };
    let program = match error {
        ProgramError::Maps { name, .. }
        | ProgramError::Malformed { name, .. }
        | ProgramError::Engine { name, .. }
        | ProgramError::Unknown { name, .. } => Some(name.clone()),
        ProgramError::Skipped(skipped) => Some(skipped.name.clone()),
        _ => None,
    };
    Failure::told(Report {
        status: Some(status),
        message: paceline::with_causes(error),
        program,
        ..Report::default()
    })
}
