//! Chains from chain files.

use std::sync::Arc;

use paceline::chain::{
    ChainFileCause, ChainFileError, ChainLoadOptions, ChainSource, FilePlace, ObjectSource,
};
use paceline::contents::ContentsCause;
use paceline::{ChangeError, LoadOptions, Member};

use crate::call;
use crate::chain::{CHAINS, Chained, of_change};
use crate::collection::{COLLECTIONS, of_no_program, of_setup, options, paceline_load_options};
use crate::object::{opened, paceline_object_options};
use crate::opaque::{paceline_chain, paceline_collection};
use crate::raw::{Given, Text};
use crate::status::{Failure, Report, paceline_status};
use crate::told::ErrorOut;

/// Loads a chain file, as docs/CHAINS.md describes it, with the objects, maps and filters that it names. Both options may be null;
/// `replaces` of the second has to be. Null on failure: the error's details have file, line and column of what is wrong, as far as it has a place in
/// the chain file; of a program that the verifier refuses those of its source.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_load_file(
    path: Text,
    object_options: Given<paceline_object_options>,
    load_options: Given<paceline_load_options>,
    error: ErrorOut,
) -> *mut paceline_chain {
    call::handle(error, || {
        let load = match load_options.optional()? {
            Some(given) if !given.replaces.is_null() => {
                return Err(Failure::argument("`replaces` is for one object, not for a chain file"));
            }
            Some(given) => options(&given)?,
            None => LoadOptions::default(),
        };
        let source = ChainSource::read(path.path()?).map_err(of_file)?;
        let objects = source.open_with(|object, path| match (&object.source, path) {
            (ObjectSource::Object(file), Some(path)) => {
                opened(&path, object_options).map_err(|failure| named_at(failure, &source, file.at))
            }
            _ => source.open_object(object).map_err(of_file),
        })?;
        let loaded = objects.load(&ChainLoadOptions { load, ..ChainLoadOptions::default() });
        let loaded = loaded.map_err(of_file)?;
        let live = loaded.live().map_err(of_file)?;
        let object = |member: &Member| {
            let part = loaded.part(member.name())?;
            Some((member.program().id(), Arc::new(part.collection.clone())))
        };
        CHAINS.give(Chained { live, objects: loaded.members.iter().filter_map(object).collect() })
    })
}

/// The object of a member of a chain that was loaded from a file: its maps and programs, which are those that the chain has.
/// PACELINE_STATUS_NOT_FOUND, without an error handle, for members that came into the chain in another way. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_collection(
    chain: *const paceline_chain,
    member: Text,
    error: ErrorOut,
) -> *mut paceline_collection {
    call::handle(error, || {
        let Chained { live, objects } = CHAINS.get(chain)?;
        let name = member.required("the name of a member")?;
        let members = live.members();
        let Some(member) = members.iter().find(|member| member.name() == name) else {
            let names = members.iter().map(|member| member.name().to_owned()).collect();
            return Err(of_change(&ChangeError::NoMember { name: name.to_owned(), names }));
        };
        let object = objects.iter().find(|(id, _)| *id == member.program().id());
        let (_, collection) = object.ok_or(Failure::NOT_FOUND)?;
        COLLECTIONS.give(Arc::clone(collection))
    })
}

fn of_file(error: ChainFileError) -> Failure {
    let message = paceline::with_causes(&error);
    let status = |status, file: String, place| {
        let message = message.clone();
        Failure::told(Report { status: Some(status), message, file: Some(file), place, ..Report::default() })
    };
    match error {
        ChainFileError::Read { file, .. } => status(paceline_status::Io, file.display().to_string(), (0, 0)),
        ChainFileError::File { file, error } => {
            let place = number(error.at.line, error.at.column);
            status(paceline_status::Chain, file.display().to_string(), place)
        }
        ChainFileError::At { file, at, cause } => {
            let (file, place) = (file.display().to_string(), number(at.line, at.column));
            of_cause(&cause, message, &file, place)
        }
        ChainFileError::NotText { file, at, .. } => {
            let place = number(at.line, at.column);
            status(paceline_status::Chain, file.display().to_string(), place)
        }
        ChainFileError::Contents(error) => {
            let place = error.place().map_or((0, 0), |(line, column)| number(line, column));
            status(status_of(&error.cause), error.name.clone(), place)
        }
        ChainFileError::Change { file, at, source } => {
            let place = at.map_or((0, 0), |at| number(at.line, at.column));
            in_file(of_change(&source), message, &file.display().to_string(), place)
        }
        _ => Failure::new(paceline_status::Chain, message),
    }
}

fn status_of(cause: &ContentsCause) -> paceline_status {
    match cause {
        ContentsCause::Read(_) => paceline_status::Io,
        _ => paceline_status::Map,
    }
}

/// The failure of an object that a chain file names: its status is that of the call which would open or load it alone.
fn of_cause(cause: &ChainFileCause, message: String, file: &str, place: (u32, u32)) -> Failure {
    let failure = match cause {
        ChainFileCause::Program { source, .. } => {
            let failure = of_no_program(source);
            // A refusal has the place in the program's source.
            if failure.status() == paceline_status::Refused {
                return failure;
            }
            failure
        }
        ChainFileCause::Setup { source, .. } => of_setup(source),
        ChainFileCause::Contents(error) => Failure::new(status_of(&error.cause), ""),
        ChainFileCause::Inline(cause) => Failure::new(status_of(cause), ""),
        ChainFileCause::Read { .. } => Failure::new(paceline_status::Io, ""),
        ChainFileCause::NoVerdicts { .. } => Failure::new(paceline_status::Chain, ""),
        ChainFileCause::Object { .. } | ChainFileCause::Config { .. } => {
            Failure::new(paceline_status::Object, "")
        }
        _ => Failure::new(paceline_status::Filter, ""),
    };
    in_file(failure, message, file, place)
}

/// The failure of an object, with the place in the chain file that names it.
fn named_at(failure: Failure, source: &ChainSource, at: FilePlace) -> Failure {
    let Failure::Told(report) = &failure else { return failure };
    let file = source.path().display().to_string();
    let message = format!("{file}:{at}: {}", report.message);
    in_file(failure, message, &file, number(at.line, at.column))
}

/// The same failure, with the message and place of the chain file.
fn in_file(failure: Failure, message: String, file: &str, place: (u32, u32)) -> Failure {
    let Failure::Told(mut report) = failure else { return failure };
    report.message = message;
    report.file = Some(file.to_owned());
    report.place = place;
    Failure::Told(report)
}

fn number(line: usize, column: usize) -> (u32, u32) {
    let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
    (number(line), number(column))
}
