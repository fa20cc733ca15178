//! `paceline dump`.

mod dispatcher;
mod listing;
mod native;
mod symbols;

use std::path::Path;
use std::process::ExitCode;

use paceline::{Engine, LoadOptions, Object, Program, ProgramSpec};
use serde_json::{Value as Json, json};

use crate::args::{DumpArgs, Target};
use crate::console;
use crate::failure::Failure;
use crate::object::Opener;
pub(crate) use listing::Listing;
use native::Native;
pub(crate) use symbols::{Symbols, helper};

/// Prints the instructions of programs.
pub(crate) fn dump(args: &DumpArgs) -> Result<ExitCode, Failure> {
    let target = Target::parse(&args.target, Path::exists);
    let opener = Opener::new(&args.how);
    let object = opener.open(&target.path, target.program.as_deref())?;
    opener.check_shapes([&object].into_iter())?;
    let name = target.path.display().to_string();
    let programs = object.programs_named(target.program.as_deref());
    let programs =
        programs.map_err(|source| Failure::Program { name: name.clone(), source: Box::new(source) })?;
    if let Some(fallback) = args.dispatcher {
        return dispatcher::dump(args, fallback, &name, &object, &programs);
    }
    let natives = if args.jit { compiled(&name, &object, &programs)? } else { Vec::new() };
    let listings: Vec<_> = programs
        .into_iter()
        .enumerate()
        .map(|(index, spec)| Listing::new(&object, spec, natives.get(index)))
        .collect();
    console::print(|out| {
        if args.json {
            let programs: Json = listings.iter().map(Listing::to_json).collect();
            serde_json::to_writer(&mut *out, &json!({ "object": name, "programs": programs }))?;
            return writeln!(out);
        }
        writeln!(out, "; {name}")?;
        listings.iter().try_for_each(|listing| listing.write_text(out, args.opcodes))
    })
}

/// The native code of programs, verified and loaded as they are to be run.
fn compiled(name: &str, object: &Object, programs: &[&ProgramSpec]) -> Result<Vec<Native>, Failure> {
    let loaded = loaded(name, object, programs)?;
    Ok(loaded.iter().filter_map(|program| program.native_code().as_ref().map(Native::new)).collect())
}

/// Programs as native code.
fn loaded(name: &str, object: &Object, programs: &[&ProgramSpec]) -> Result<Vec<Program>, Failure> {
    let options = LoadOptions { engine: Engine::Jit, ..LoadOptions::default() };
    let collection = object
        .load(&options)
        .map_err(|source| Failure::Setup { name: name.to_owned(), source: Box::new(source) })?;
    let load = |spec: &&ProgramSpec| {
        let program = collection.program(Some(&spec.name));
        Ok(program.map_err(|error| Failure::no_program(name, collection.object(), error))?.into_program())
    };
    programs.iter().map(load).collect()
}
