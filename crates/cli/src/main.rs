//! The command `paceline`.
#![forbid(unsafe_code)]

mod args;
mod chain;
mod completions;
mod console;
mod dump;
mod failure;
mod filter;
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
use paceline::JitSymbols;

fn main() -> ExitCode {
    let command = Args::parse().command;
    let json = command.prints_json();
    let done = announce_names().and_then(|()| execute(command));
    done.unwrap_or_else(|failure| failure.report(json))
}

/// Tells `perf` and `gdb` of native code, where the environment asks for it: before the first code is made.
fn announce_names() -> Result<(), Failure> {
    JitSymbols::from_env()?.announce().map_err(Failure::AnnounceNames)
}

fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Filter(args) => filter::filter(&args),
        Command::Chain(args) => chain::chain(args.command),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Completions(args) => completions::completions(&args),
    }
}
