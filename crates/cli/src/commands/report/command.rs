//! Writing the page.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::args::ReportArgs;
use super::collect::collect;
use super::page::page;
use crate::common::console;
use crate::common::failure::{CommandError, Failure};

/// The page cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
struct WriteError {
    name: String,
    source: io::Error,
}

impl CommandError for WriteError {}

/// Writes the report of a run.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let page = page(&collect(args)?);
    write(&args.output, &page)
        .map_err(|source| WriteError { name: args.output.display().to_string(), source })?;
    console::note(format_args!("{}: {} KiB", args.output.display(), page.len() / 1024));
    Ok(ExitCode::SUCCESS)
}

/// Replaces the file as a whole.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
