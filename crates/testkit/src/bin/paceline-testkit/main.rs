//! Campaigns and corpus runs, a subcommand each:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- help
//! ```
//!
//! A campaign derives everything from `--seed`, prints what reproduces a failure, and exits with status 1 if there was one.
#![allow(clippy::print_stderr, reason = "a command")]

mod campaign;
mod cases;
mod chains;
mod classic;
mod compiled;
mod corpus;
mod cost;
mod doors;
mod embed;
mod engines;
mod fuzz;
mod generate;
mod hostile;
mod ir;
mod list;
mod mutate;
mod prove;
mod staged;
mod tally;
mod traffic;
mod verdicts;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use paceline_testkit::child;

/// Result of a subcommand: its exit status, or the reason why it could not run.
type Outcome = Result<ExitCode, String>;

#[derive(Parser)]
// A child's own seed follows the seed of its parent on the command line.
#[command(
    name = "paceline-testkit",
    args_override_self = true,
    about = "Campaigns and corpus runs of Paceline's tests"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print text cases as the parser sees them
    Cases(cases::Options),
    /// Run random chains of random programs on all ways to run them
    Chains(chains::Options),
    /// Check, convert and run random classic programs, against the kernel and libpcap
    Classic(classic::Options),
    /// Run random C, compiled, on all engines and the kernel
    Compiled(compiled::Options),
    /// Tell what becomes of each program of objects, here and in the kernel, over captures
    Corpus(corpus::Options),
    /// Measure verification and compilation of programs made to take long
    Cost(cost::Options),
    /// Run random scenes through each command, the kernel and Python
    Doors(doors::Options),
    /// Run random sequences of the public API, as a hostile embedder would
    Embed(embed::Options),
    /// Run random programs that the verifier accepts on all engines
    Engines(engines::Options),
    /// Run random instructions, verified or not, here and in the kernel
    Fuzz(fuzz::Options),
    /// Generate inputs for the branches of random programs, and run them on all engines
    Generate(generate::Options),
    /// Verify instructions that no compiler wrote
    Hostile(hostile::Options),
    /// Run random functions in SSA form before and after passes
    Ir(ir::Options),
    /// List the engines that this machine can run
    List(list::Options),
    /// Run programs of real objects with an instruction or two changed
    Mutate(mutate::Options),
    /// Prove random properties of random programs, which no random run may refute
    Prove(prove::Options),
    /// Run bursts with look-ups ahead, on programs that change what the next packets look up
    Staged(staged::Options),
    /// Write the shipped capture
    Traffic(traffic::Options),
    /// Verify random programs here and in the kernel, and run those that are accepted
    Verdicts(verdicts::Options),
    /// Verify programs of objects here and in the kernel, and compare the work
    Verify(verify::Options),
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
        Command::Cases(options) => cases::run(&options),
        Command::Chains(options) => options.seeds.run(&options),
        Command::Classic(options) => classic::run(&options),
        Command::Compiled(options) => compiled::run(&options),
        Command::Corpus(options) => corpus::run(&options),
        Command::Cost(options) => cost::run(&options),
        Command::Doors(options) => doors::run(&options),
        Command::Embed(options) => embed::run(&options),
        Command::Engines(options) => options.seeds.run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Generate(options) => generate::run(&options),
        Command::Hostile(options) => hostile::run(&options),
        Command::Ir(options) => options.seeds.run(&options),
        Command::List(options) => list::run(&options),
        Command::Mutate(options) => mutate::run(&options),
        Command::Prove(options) => prove::run(&options),
        Command::Staged(options) => options.seeds.run(&options),
        Command::Traffic(options) => traffic::run(&options),
        Command::Verdicts(options) => verdicts::run(&options),
        Command::Verify(options) => verify::run(&options),
    }
}
