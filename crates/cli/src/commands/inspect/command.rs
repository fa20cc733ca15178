//! The survey of an object, as text or JSON.

use std::process::ExitCode;

use paceline::Engine;

use super::args::InspectArgs;
use super::survey::Survey;
use super::text;
use crate::common::failure::Failure;
use crate::common::report;
use crate::object::{Opener, load_options};

/// Prints what is in an object.
pub(crate) fn inspect(args: &InspectArgs) -> Result<ExitCode, Failure> {
    args.how.without_maps()?;
    let opener = Opener::new(&args.how);
    let object = opener.open(&args.object, None)?;
    opener.check_shapes([&object].into_iter())?;
    let name = args.object.display().to_string();
    let survey = Survey::of(
        &name,
        &object,
        &load_options(Engine::best(), &args.how, paceline::LoadOptions::default().limits.cpus),
    );
    report::print(|out| {
        if args.json {
            serde_json::to_writer(&mut *out, &survey.to_json())?;
            return writeln!(out);
        }
        text::write(out, &survey)
    })
}
