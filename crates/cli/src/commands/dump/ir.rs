//! Programs in SSA form.

use std::process::ExitCode;

use paceline::ir::{BuildError, Module, PassError, Passes, build, optimize};
use paceline::verifier::Verified;
use paceline::{Engine, Object, ProgramSpec, VerifiedProgram};
use serde_json::{Value as Json, json};

use super::args::{DumpArgs, StageArg};
use super::loaded::loaded;
use crate::common::failure::{CommandError, Failure};
use crate::common::report;

/// A verified program that cannot be built or optimized: a fault of Paceline.
#[derive(Debug, thiserror::Error)]
#[error("{object}: program {program}")]
struct FormError {
    object: String,
    program: String,
    source: FormCause,
}

#[derive(Debug, thiserror::Error)]
enum FormCause {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Pass(#[from] PassError),
}

impl CommandError for FormError {}

/// Prints the form of the programs at a stage.
pub(super) fn dump(
    args: &DumpArgs,
    stage: StageArg,
    name: &str,
    object: &Object,
    programs: &[&ProgramSpec],
) -> Result<ExitCode, Failure> {
    let proven = loaded(Engine::Plain, args, name, object, programs)?;
    let form = |(spec, program): (&&ProgramSpec, &VerifiedProgram)| {
        let failed = |source| FormError { object: name.to_owned(), program: spec.name.clone(), source };
        Ok(module(program.verified(), stage).map_err(failed)?)
    };
    let modules = programs.iter().zip(&proven).map(form).collect::<Result<Vec<Module>, Failure>>()?;
    report::print(|out| {
        let mut each = programs.iter().zip(&modules);
        if args.json {
            let programs: Json =
                each.map(|(spec, module)| json!({ "name": spec.name, "ir": module.to_string() })).collect();
            serde_json::to_writer(&mut *out, &json!({ "object": name, "programs": programs }))?;
            return writeln!(out);
        }
        writeln!(out, "; {name}")?;
        each.try_for_each(|(spec, module)| {
            write!(out, "\n; program {}, section {}\n\n{module}", spec.name, spec.section)
        })
    })
}

fn module(verified: &Verified, stage: StageArg) -> Result<Module, FormCause> {
    let mut module = build(verified)?;
    if stage == StageArg::Optimized {
        optimize(&mut module, &Passes::default().checked(true))?;
    }
    Ok(module)
}
