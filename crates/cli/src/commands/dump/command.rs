//! The listing of programs, as text or JSON.

use std::process::ExitCode;

use paceline::{Engine, LookAhead, NoSlice, Object, ProgramSpec, Unsupported, VerifiedProgram};
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
    args.how.without_maps()?;
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
        let compiled: Option<&Result<Compiled, Option<Unsupported>>> = compiled.get(index);
        if let Some(Err(unsupported)) = compiled {
            return Listing::new(object, spec, None).without_native(unsupported.map(|what| what.to_string()));
        }
        let compiled = compiled.and_then(|compiled| compiled.as_ref().ok());
        let listing = Listing::new(object, spec, compiled.map(|compiled| &compiled.native));
        match compiled.map(|compiled| &compiled.slice) {
            Some(Ok((slice, native))) => listing.with_slice(Listing::new(object, slice, Some(native))),
            Some(Err(Some(reason))) if is_told(args, reason) => listing.without_slice(reason.to_string()),
            _ => listing,
        }
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
    /// The slice that runs ahead of bursts, or why there is none.
    slice: Result<(ProgramSpec, Native), Option<NoSlice>>,
    native: Native,
}

/// Whether a listing says why a program has no slice: the user asked for one, or Paceline is at fault.
fn is_told(args: &DumpArgs, reason: &NoSlice) -> bool {
    args.how.look_ahead == LookAhead::Always || reason.is_fault()
}

/// Programs, verified and loaded as they are to be run: as native code, or what there is no native code for.
fn compiled(
    args: &DumpArgs,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<Vec<Result<Compiled, Option<Unsupported>>>, Failure> {
    let compiled = |program: &VerifiedProgram| {
        let program = program.program();
        let slice = program.slice().cloned().zip(program.slice_code().as_ref().map(Native::new));
        let slice = slice.ok_or_else(|| program.no_slice().cloned());
        let native = program.native_code().ok_or(program.unsupported())?;
        Ok(Compiled { slice, native: Native::new(&native) })
    };
    Ok(loaded(Engine::Jit, args, name, object, programs)?.iter().map(compiled).collect())
}
