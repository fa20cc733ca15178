//! The code by which a call site chooses among programs.

use std::process::ExitCode;

use paceline::{CallSite, Engine, Fallback, Object, ProgramSpec, Target, UpdateError};
use serde_json::json;

use super::args::{DumpArgs, FallbackArg};
use super::loaded::loaded;
use super::native::Native;
use crate::common::failure::{CommandError, Failure};
use crate::common::report;

/// Programs do not go into a dispatcher.
#[derive(Debug, thiserror::Error)]
#[error("{name}: dispatcher")]
struct DispatcherError {
    name: String,
    source: UpdateError,
}

impl CommandError for DispatcherError {}

/// Prints the dispatcher of a site that has the programs.
pub(super) fn dump(
    args: &DumpArgs,
    fallback: FallbackArg,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<ExitCode, Failure> {
    let site = CallSite::new(match fallback {
        FallbackArg::Indirect => Fallback::Indirect,
        FallbackArg::Retpoline => Fallback::Retpoline,
    });
    for program in loaded(Engine::Jit, args, name, object, programs)? {
        site.update(None, Some(&Target::from(&program.into_program())))
            .map_err(|source| DispatcherError { name: name.to_owned(), source })?;
    }
    let native = site.code().as_ref().map(Native::of_dispatcher);
    report::print(|out| {
        if args.json {
            let dispatcher = native.as_ref().map(Native::to_json);
            serde_json::to_writer(&mut *out, &json!({ "object": name, "dispatcher": dispatcher }))?;
            return writeln!(out);
        }
        let plural = if site.slots() == 1 { "" } else { "s" };
        writeln!(
            out,
            "; {name}\n\n; dispatcher of {} program{plural}; %rcx: where the one that is called begins",
            site.slots()
        )?;
        for function in native.iter().flat_map(|native| &native.functions) {
            writeln!(out, "\n<{}>:", function.name)?;
            function.insns.iter().try_for_each(|insn| insn.write(out, args.opcodes))?;
        }
        Ok(())
    })
}
