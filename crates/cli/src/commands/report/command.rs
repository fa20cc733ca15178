//! Writing the page.

use std::process::ExitCode;

use super::args::ReportArgs;
use super::collect::Inputs;
use super::page::page;
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{Opened, name};

/// Writes the report of a run.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let inputs = Inputs::open(args)?;
    let output = Opened::open_text(&args.output, "--output", &mut inputs.taken())?;
    let page = page(&inputs.collect()?);
    output.write_text(&page)?;
    console::note(format_args!("{}: {} KiB", name(&args.output), page.len() / 1024));
    Ok(ExitCode::SUCCESS)
}
