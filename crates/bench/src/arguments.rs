//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::record;
use crate::settings::Settings;
use crate::tables::TABLES;

/// Action.
#[derive(Debug)]
pub(crate) enum Command {
    /// Run tables.
    Run { tables: Vec<String>, output: Output, settings: Settings },
    /// Write the generated parts of the page.
    Report,
    /// Compile all examples, each alone or some as a chain, for a profiler.
    Compile { chain: bool, rounds: usize },
    /// Compare two files with rows.
    CompareFiles { before: PathBuf, after: PathBuf, percent: f64 },
    /// Compare this program with another build of it.
    CompareBuilds { against: PathBuf, tables: Vec<String>, rounds: usize, percent: f64, settings: Settings },
    /// Print the usage.
    Help,
}

/// The form of a run's results.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Markdown,
    /// Records on the standard output.
    Json,
    /// Markdown, and records in this folder.
    Record(PathBuf),
}

/// Everything that the command line has, in no order.
struct Given {
    words: Vec<OsString>,
    output: Output,
    settings: Settings,
    against: Option<PathBuf>,
    chain: bool,
    rounds: usize,
    percent: f64,
}

pub(crate) fn usage() -> String {
    let names: Vec<_> = TABLES.iter().map(|(name, _)| *name).collect();
    format!(
        "usage: paceline-bench TABLE... [--json | --record[=FOLDER]] [--smoke]
       paceline-bench report
       paceline-bench compile [--chain] [--rounds N]
       paceline-bench compare BEFORE AFTER [--percent P]
       paceline-bench compare --against BINARY TABLE... [--rounds N] [--percent P] [--smoke]
tables: {}, all",
        names.join(", ")
    )
}

/// The command of this process.
pub(crate) fn parse() -> Result<Command, lexopt::Error> {
    command(lexopt::Parser::from_env())
}

fn command(parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let Some(given) = given(parser)? else { return Ok(Command::Help) };
    match given.words.first().and_then(|word| word.to_str()) {
        Some("report") if given.words.len() == 1 => Ok(Command::Report),
        Some("report") => Err("`report` takes nothing".into()),
        Some("compile") if given.words.len() == 1 => {
            Ok(Command::Compile { chain: given.chain, rounds: given.rounds })
        }
        Some("compare") => comparison(given),
        Some(_) => running(given),
        None => Err("which table?".into()),
    }
}

/// Arguments that are given; `None` if help is asked for.
fn given(mut parser: lexopt::Parser) -> Result<Option<Given>, lexopt::Error> {
    use lexopt::prelude::*;
    let settings = Settings { smoke: false };
    let mut given = Given {
        words: Vec::new(),
        output: Output::Markdown,
        settings,
        against: None,
        chain: false,
        rounds: 5,
        percent: 2.0,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("json") => given.output = Output::Json,
            Long("record") => {
                given.output =
                    Output::Record(parser.optional_value().map_or(record::FOLDER.into(), PathBuf::from));
            }
            Long("smoke") => given.settings.smoke = true,
            Long("chain") => given.chain = true,
            Long("against") => given.against = Some(parser.value()?.into()),
            Long("rounds") => given.rounds = parser.value()?.parse::<usize>()?.max(1),
            Long("percent") => given.percent = parser.value()?.parse()?,
            Value(word) => given.words.push(word),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(given))
}

fn running(given: Given) -> Result<Command, lexopt::Error> {
    if given.settings.smoke && matches!(given.output, Output::Record(_)) {
        return Err("--smoke has no figures to record".into());
    }
    let tables = tables(&given.words)?;
    Ok(Command::Run { tables, output: given.output, settings: given.settings })
}

fn comparison(given: Given) -> Result<Command, lexopt::Error> {
    let (words, percent) = (&given.words[1..], given.percent);
    if let Some(against) = given.against {
        let (tables, rounds, settings) = (tables(words)?, given.rounds, given.settings);
        return Ok(Command::CompareBuilds { against, tables, rounds, percent, settings });
    }
    match words {
        [before, after] => Ok(Command::CompareFiles { before: before.into(), after: after.into(), percent }),
        _ => Err("`compare` takes two files, or --against BINARY and tables".into()),
    }
}

/// The names of the tables, each once and known.
fn tables(words: &[OsString]) -> Result<Vec<String>, lexopt::Error> {
    let all = || TABLES.iter().map(|(name, _)| (*name).to_owned());
    if words.iter().any(|word| word == "all") {
        return Ok(all().collect());
    }
    if let Some(unknown) = words.iter().find(|word| !TABLES.iter().any(|(name, _)| **word == **name)) {
        return Err(format!("there is no table {}", unknown.display()).into());
    }
    match all().filter(|name| words.iter().any(|word| **word == **name)).collect::<Vec<_>>() {
        none if none.is_empty() => Err("which table?".into()),
        tables => Ok(tables),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Command, String> {
        command(lexopt::Parser::from_args(words.split(' '))).map_err(|error| error.to_string())
    }

    #[test]
    fn a_smoke_run_is_not_recorded() {
        assert!(parsed("maps --smoke --record").is_err_and(|error| error.contains("record")));
        let Ok(Command::Run { tables, output, .. }) = parsed("maps code --record=/tmp/x") else { panic!() };
        assert_eq!((tables.len(), output), (2, Output::Record("/tmp/x".into())));
        let Ok(Command::Run { tables, output, .. }) = parsed("--record all") else { panic!() };
        assert_eq!((tables.len(), output), (TABLES.len(), Output::Record(record::FOLDER.into())));
    }

    #[test]
    fn comparisons_are_of_files_or_builds() {
        assert!(matches!(parsed("compare a b"), Ok(Command::CompareFiles { .. })));
        let builds = parsed("compare --against old maps --rounds 3");
        assert!(matches!(builds, Ok(Command::CompareBuilds { rounds: 3, .. })));
        for wrong in
            ["compare a", "compare --against old", "compare --against old nothing", "report maps", "x"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
