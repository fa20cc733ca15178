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
    let compiled = if args.jit { compiled(args, name, object, &programs)? } else { Vec::new() };
    let listing = |(index, spec)| {
        let compiled: Option<&Compiled> = compiled.get(index);
        let slice = compiled.and_then(|compiled| compiled.slice.as_ref());
        let slice = slice.map(|(slice, native)| Listing::new(object, slice, Some(native)));
        Listing::new(object, spec, compiled.map(|compiled| &compiled.native)).with_slice(slice)
    };
    let listings: Vec<_> = programs.into_iter().enumerate().map(listing).collect();
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

/// A program as native code.
struct Compiled {
    /// The slice that runs ahead of bursts.
    slice: Option<(ProgramSpec, Native)>,
    native: Native,
}

/// Programs, verified and loaded as they are to be run.
fn compiled(
    args: &DumpArgs,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<Vec<Compiled>, Failure> {
    let compiled = |program: &VerifiedProgram| {
        let program = program.program();
        let slice = program.slice().cloned().zip(program.slice_code().as_ref().map(Native::new));
        Some(Compiled { slice, native: Native::new(&program.native_code()?) })
    };
    Ok(loaded(Engine::Jit, args, name, object, programs)?.iter().filter_map(compiled).collect())
}
