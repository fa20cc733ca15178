//! Campaigns and corpus runs, a subcommand each:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- help
//! ```
//!
//! A campaign derives everything from `--seed`, prints what reproduces a failure, and exits with 1 if there was one.
#![allow(clippy::print_stderr, reason = "a command")]

mod compiled;
mod corpus;
mod cost;
mod embed;
mod list;
mod mutate;
mod tally;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use paceline_testkit::child;

/// What a subcommand ends with: its exit status, or why it could not run.
type Outcome = Result<ExitCode, String>;

#[derive(Parser)]
#[command(name = "paceline-testkit", about = "Campaigns and corpus runs of Paceline's tests")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure verification and compilation of programs made to take long
    Cost(cost::Options),
    /// Run random C, compiled, on all engines and the kernel
    Compiled(compiled::Options),
    /// Tell what becomes of each program of objects, here and in the kernel, over captures
    Corpus(corpus::Options),
    /// Run programs of real objects with an instruction or two changed
    Mutate(mutate::Options),
    /// List the engines that this machine can run
    Engines(list::Options),
    /// Run random sequences of the public API, as a hostile embedder would
    Embed(embed::Options),
}

fn main() -> ExitCode {
    let outcome = child::attach().and_then(|()| run(Arguments::parse().command));
    outcome.unwrap_or_else(|error| {
        eprintln!("paceline-testkit: {error}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Cost(options) => cost::run(&options),
        Command::Compiled(options) => compiled::run(&options),
        Command::Corpus(options) => corpus::run(&options),
        Command::Mutate(options) => mutate::run(&options),
        Command::Engines(options) => list::run(&options),
        Command::Embed(options) => embed::run(&options),
    }
}
