//! The listing of programs, as text or JSON.

use std::process::ExitCode;

use paceline::{Engine, Object, ProgramSpec, VerifiedProgram};
use serde_json::{Value as Json, json};

use super::args::DumpArgs;
use super::dispatcher;
use super::ir;
use super::listing::Listing;
use super::loaded::loaded;
use super::native::Native;
use crate::common::failure::Failure;
use crate::common::report;
use crate::object::{NamedObject, Opener};

/// Prints the instructions of programs.
pub(crate) fn dump(args: &DumpArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.how);
    let named = NamedObject::open(&args.target, &opener)?;
    let NamedObject { name, object, .. } = &named;
    opener.check_shapes([object].into_iter())?;
    let programs = named.programs()?;
    if let Some(fallback) = args.dispatcher {
        return dispatcher::dump(args, fallback, name, object, &programs);
    }
    if let Some(stage) = args.ir {
        return ir::dump(args, stage, name, object, &programs);
    }
    let natives = if args.jit { compiled(name, object, &programs)? } else { Vec::new() };
    let listings: Vec<_> = programs
        .into_iter()
        .enumerate()
        .map(|(index, spec)| Listing::new(object, spec, natives.get(index)))
        .collect();
    report::print(|out| {
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
    let loaded = loaded(Engine::Jit, name, object, programs)?;
    let native = |program: &VerifiedProgram| program.program().native_code().as_ref().map(Native::new);
    Ok(loaded.iter().filter_map(native).collect())
}
