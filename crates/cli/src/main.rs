//! The command `paceline`.
#![forbid(unsafe_code)]

mod args;
mod completions;
mod console;
mod dump;
mod failure;
mod inspect;
mod maps;
#[cfg(test)]
mod mutations;
mod object;
mod run;
mod verify;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Completions(args) => completions::completions(&args),
    };
    done.unwrap_or_else(Failure::report)
}
