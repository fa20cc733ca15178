//! `paceline inspect`.

mod missing;
mod survey;
mod table;
mod text;

use std::process::ExitCode;

use paceline::LoadOptions;

use crate::args::InspectArgs;
use crate::console;
use crate::failure::Failure;
use crate::object;
pub(crate) use survey::Survey;

/// Prints what is in an object.
pub(crate) fn inspect(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let object = object::open(&args.object)?;
    let name = args.object.display().to_string();
    let survey = Survey::of(&name, &object, &LoadOptions::default());
    console::print(|out| {
        if args.json {
            serde_json::to_writer(&mut *out, &survey.to_json())?;
            return writeln!(out);
        }
        survey.write(out)
    })
}
