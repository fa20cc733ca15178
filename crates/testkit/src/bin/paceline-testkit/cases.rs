//! `cases`: text cases as the parser sees them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use paceline_testkit::case::{expand_file, find_files, read_file};
use paceline_testkit::export::export;
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Case files, or directories of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the text with snippets, preludes and tables expanded (the default)
    #[arg(long, conflicts_with = "dump")]
    expand: bool,
    /// Print a line for each case: its name, a tab, and all it says besides its name and place; sort and compare the
    /// second fields to see whether two sets of files test the same
    #[arg(long)]
    dump: bool,
    /// Print a JSON object for each case that runs one XDP program: programs, maps, runs, and what the public library does with them,
    /// for tests of bindings
    #[arg(long, conflicts_with_all = ["dump", "expand"])]
    export: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    for path in &options.files {
        let files =
            if path.is_dir() { find_files(path).map_err(|e| e.to_string())? } else { vec![path.clone()] };
        files.iter().try_for_each(|file| match options {
            Options { dump: true, .. } => dump(path, file),
            Options { export: true, .. } => print_exported(path, file),
            _ => expand(file),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn expand(file: &Path) -> Result<(), String> {
    say!("{}", expand_file(file).map_err(|error| paceline::with_causes(&error))?.trim_end());
    Ok(())
}

fn print_exported(root: &Path, file: &Path) -> Result<(), String> {
    let name = file.strip_prefix(root).unwrap_or(file).with_extension("");
    for case in read_file(file).map_err(|error| paceline::with_causes(&error))? {
        if let Some(json) = export(&format!("{}::{}", name.display(), case.name), &case) {
            say!("{json}");
        }
    }
    Ok(())
}

fn dump(root: &Path, file: &Path) -> Result<(), String> {
    let name = file.strip_prefix(root).unwrap_or(file).with_extension("");
    for case in read_file(file).map_err(|error| paceline::with_causes(&error))? {
        say!("{}::{}\t{}", name.display(), case.name, case.canonical());
    }
    Ok(())
}
