//! `paceline man`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;

use crate::common::failure::{CommandError, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline man ~/.local/share/man/man1                 then: man paceline-run";

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Folder to write the pages to, made if there is none: paceline.1, and one for each command.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// The pages cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
struct ManError {
    name: String,
    source: io::Error,
}

impl CommandError for ManError {}

/// Writes the manual pages of a command and all its subcommands.
pub(crate) fn man(args: &ManArgs, command: clap::Command) -> Result<ExitCode, Failure> {
    let written =
        fs::create_dir_all(&args.folder).and_then(|()| clap_mangen::generate_to(command, &args.folder));
    written.map_err(|source| ManError { name: args.folder.display().to_string(), source })?;
    Ok(ExitCode::SUCCESS)
}
