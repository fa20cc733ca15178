//! `paceline completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::console;
use crate::failure::Failure;

/// Prints a shell's completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    // The generator panics when its writer fails; memory does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "paceline", &mut script);
    console::print(|out| out.write_all(&script))
}
