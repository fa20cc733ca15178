//! Measures Paceline and its rivals, and reports whether the bars are met.
//!
//! `cargo run --release -p paceline-bench -- TABLE` runs one of [`TABLES`], or `all`, and prints Markdown; with `--json`, or
//! with `--record` into a file, it gives the results as a [`record::Record`]. `--smoke` runs every row once and briefly, as
//! a test; its figures mean nothing. `report` makes the tables of the page from the records, `compare` shows what became
//! slower.
#![deny(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod arguments;
mod bulk;
mod captures;
mod chains;
mod code;
mod compare;
mod compile;
mod coverage;
mod dispatcher;
mod engines;
mod helpers;
#[cfg(feature = "kernel")]
mod kernel;
mod live;
mod lookahead;
mod machine;
mod maps;
mod measure;
mod page;
mod record;
mod report;
mod settings;
mod tables;
mod verification;

use std::process::ExitCode;

use arguments::{Command, Output};
use record::Record;
use settings::Settings;
use tables::TABLES;

/// Runs tables and gives out their results.
fn run(tables: &[String], output: &Output, settings: Settings) -> Result<(), Box<dyn std::error::Error>> {
    let cores = machine::pin()?;
    for (name, table) in TABLES.iter().filter(|(name, _)| tables.iter().any(|table| table == name)) {
        let circumstances = machine::run(cores, name);
        let record = Record::new(name, circumstances, table(settings)?);
        if *output == Output::Json {
            print!("{}", record.lines());
            continue;
        }
        println!("### {name}\n\n{}\n\n{}", record.run.description(), record.markdown());
        if let Output::Record(folder) = output {
            eprintln!("{} is written", record.write(folder)?.display());
        }
    }
    Ok(())
}

/// Does what the command line says; returns whether a comparison found nothing slower.
fn execute(command: &Command) -> Result<bool, Box<dyn std::error::Error>> {
    match command {
        Command::Help => println!("{}", arguments::usage()),
        Command::Report => page::write()?,
        Command::Compile { chain, rounds } => {
            let instructions = if *chain { chains::compile(*rounds) } else { compile::run(*rounds) }?;
            println!("{instructions} instructions");
        }
        Command::Run { tables, output, settings } => run(tables, output, *settings)?,
        Command::CompareFiles { before, after, percent } => {
            return Ok(compare::files(before, after)?.print(*percent));
        }
        Command::CompareBuilds { against, tables, rounds, percent, settings } => {
            return Ok(compare::builds(against, tables, *rounds, *settings)?.print(*percent));
        }
    }
    Ok(true)
}

fn main() -> ExitCode {
    // A table of memory runs this program again for each figure.
    if let Some(code) = captures::child().or_else(maps::child) {
        return code;
    }
    let command = match arguments::parse() {
        Ok(command) => command,
        Err(error) => {
            eprintln!("paceline-bench: {error}\n{}", arguments::usage());
            return ExitCode::from(2);
        }
    };
    match execute(&command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("paceline-bench: {error}");
            ExitCode::from(2)
        }
    }
}
