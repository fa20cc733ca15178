//! Measures Paceline and its rivals, and reports whether the bars are met.
//!
//! `cargo run --release -p paceline-bench -- TABLE [--json] [--smoke]`, where `TABLE` is one of [`TABLES`] or `all`. Prints
//! a Markdown table, or with `--json` one object per row. `--smoke` runs every row once and briefly, as a test; its figures
//! mean nothing.
#![deny(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod bulk;
mod captures;
mod chains;
mod code;
mod dispatcher;
mod engines;
mod machine;
mod maps;
mod measure;
mod report;
mod verification;

use std::process::ExitCode;

use report::{Report, Row};

/// Settings of a table.
#[derive(Clone, Copy, Debug)]
struct Settings {
    /// Run each row once and briefly.
    smoke: bool,
}

/// Result of a part of a table.
type Rows = Result<Vec<Row>, Box<dyn std::error::Error>>;

/// Result of a table.
type Table = Result<Report, Box<dyn std::error::Error>>;

/// The function of a table.
type Make = fn(Settings) -> Table;

/// All tables.
const TABLES: &[(&str, Make)] = &[
    ("bulk", bulk::table),
    ("captures", captures::table),
    ("chains", chains::table),
    ("classic", engines::classic::table),
    ("code", code::table),
    ("dispatcher", dispatcher::table),
    ("engines", engines::table),
    ("maps", maps::table),
    ("verification", verification::table),
];

struct Arguments {
    table: String,
    json: bool,
    settings: Settings,
}

fn arguments() -> Result<Arguments, lexopt::Error> {
    use lexopt::prelude::*;
    let (mut table, mut json, mut smoke) = (None, false, false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => {
                println!("{}", usage());
                std::process::exit(0);
            }
            Long("json") => json = true,
            Long("smoke") => smoke = true,
            Value(name) if table.is_none() => table = Some(name.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let table = table.ok_or("which table?")?;
    Ok(Arguments { table, json, settings: Settings { smoke } })
}

fn usage() -> String {
    let names: Vec<_> = TABLES.iter().map(|(name, _)| *name).collect();
    format!("usage: paceline-bench {}|all [--json] [--smoke]", names.join("|"))
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let chosen: Vec<_> =
        TABLES.iter().filter(|(name, _)| arguments.table == "all" || arguments.table == *name).collect();
    if chosen.is_empty() {
        return Err(format!("there is no table {}\n{}", arguments.table, usage()).into());
    }
    let cores = machine::pin()?;
    if !arguments.json {
        println!("{}\n", machine::description(cores));
    }
    for (name, table) in chosen {
        let report = table(arguments.settings)?;
        if arguments.json {
            report.rows.iter().for_each(|row| println!("{}", row.json(name)));
        } else {
            println!("{}", report::markdown(name, &report));
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    // A table of memory runs this program again for each figure.
    if let Some(code) = captures::child().or_else(maps::child) {
        return code;
    }
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("paceline-bench: {error}\n{}", usage());
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("paceline-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
