//! `paceline completions`.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::common::failure::Failure;
use crate::common::report;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline completions bash > ~/.local/share/bash-completion/completions/paceline
  paceline completions zsh > ~/.zfunc/_paceline
  paceline completions fish > ~/.config/fish/completions/paceline.fish";

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints a shell's completion script for a command.
pub(crate) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<ExitCode, Failure> {
    // The generator panics when its writer fails; memory does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "paceline", &mut script);
    report::print(|out| out.write_all(&script))
}
