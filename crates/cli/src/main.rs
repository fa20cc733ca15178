//! The command `paceline`.
#![forbid(unsafe_code)]

mod args;
mod chain;
mod commands;
mod common;
mod control;
mod coverage;
mod expression;
mod inputs;
mod kernel_maps;
mod kernel_side;
mod maps;
mod measure;
#[cfg(test)]
mod mutations;
mod object;
mod ports;
mod session;
mod sides;
mod subject;
mod world;

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use paceline::{JitSymbols, JitSymbolsError, NAMES_VARIABLE};

use args::{Args, ChainCommand, Command};
use commands::{
    bench, capture, completions, diff, dump, filter, generate, inspect, live, man, prove, remote, report,
    run, scan, test, top, verify, why,
};
use common::args::{in_words, taking_negative_numbers};
use common::failure::{CommandError, Failure};

/// Names of native code cannot be announced.
#[derive(Debug, thiserror::Error)]
enum AnnounceError {
    #[error(transparent)]
    Env(JitSymbolsError),
    #[error("names of native code, as {NAMES_VARIABLE} asks for: {0}")]
    Write(io::Error),
}

impl CommandError for AnnounceError {}

fn main() -> ExitCode {
    let description = taking_negative_numbers(Args::command());
    let parsed = description
        .clone()
        .try_get_matches()
        .and_then(|mut matches| Args::from_arg_matches_mut(&mut matches));
    let command = parsed.unwrap_or_else(|error| in_words(error, &description).exit()).command;
    let json = command.prints_json();
    let done = announce_names().map_err(Failure::from).and_then(|()| execute(command));
    done.unwrap_or_else(|failure| failure.report(json))
}

/// Announces native code to `perf` and `gdb` if the environment asks for it, before the first code is made.
fn announce_names() -> Result<(), AnnounceError> {
    JitSymbols::from_env().map_err(AnnounceError::Env)?.announce().map_err(AnnounceError::Write)
}

fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Live(args) => live::live(&args),
        Command::Status(args) => remote::status(&args),
        Command::Stats(args) => remote::stats(&args),
        Command::Top(args) => top::top(&args),
        Command::Capture(args) => capture::capture(&args),
        Command::Map(args) => remote::map(&args),
        Command::Stop(args) => remote::stop(&args),
        Command::Filter(args) => filter::filter(&args),
        Command::Scan(args) => scan::scan(&args),
        Command::Chain(args) => execute_chain(args.command),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Dump(args) => dump::dump(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Test(args) => test::test(&args),
        Command::Generate(args) => generate::generate(&args),
        Command::Prove(args) => prove::prove(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Report(args) => report::report(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Why(args) => why::why(&args),
        Command::Man(args) => man::man(&args, Args::command()),
        Command::Completions(args) => completions::completions(&args, Args::command()),
    }
}

/// Executes a command on chains; `status` and `trace` are runs with options.
fn execute_chain(command: ChainCommand) -> Result<ExitCode, Failure> {
    match command {
        ChainCommand::Show(args) => commands::chain::show(&args),
        ChainCommand::Explain(args) => commands::chain::explain(&args),
        ChainCommand::Status(args) => run::run(&args.counted()),
        ChainCommand::Trace(args) => run::run(&args.traced()),
        ChainCommand::Diff(args) => commands::chain::diff(&args),
        ChainCommand::Running(args) => commands::chain::running(&args),
    }
}
