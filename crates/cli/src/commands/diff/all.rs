//! Both sides over all packets, as conditions on what packets hold.

use std::process::ExitCode;
use std::time::Instant;

use paceline::generate::{CompareError, Progress, differences};

use super::args::DiffArgs;
use super::told::{Compared, Only, Report};
use crate::common::failure::{CommandError, Failure};
use crate::common::report;
use crate::inputs::{Subjects, Unexplored, Words, each};
use crate::object::Opener;

/// Most inputs of a program that are told.
const MOST: usize = 20;

/// The programs cannot be compared.
#[derive(Debug, thiserror::Error)]
enum AllError {
    #[error("{old} and {new}")]
    Compare { old: String, new: String, source: Box<CompareError> },
    #[error("{new} has no program {program}")]
    Missing { new: String, program: String },
}

impl CommandError for AllError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Compare { .. } => None,
            Self::Missing { .. } => Some("name one program of each object: OBJECT:PROGRAM".to_owned()),
        }
    }
}

/// A program of each object.
type Pair<'p> = (&'p str, &'p str);

/// Compares the programs of two objects on all inputs.
pub(super) fn all(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.object);
    let old = Subjects::open(&args.old, &opener)?;
    let new = Subjects::open(args.new_target(), &opener)?;
    let pairs = pairs(&old, &new)?;
    let words = Words { reached: "differences", open: "open" };
    let results = each(
        &pairs,
        args.search.workers(),
        words,
        |pair| pair.0,
        |pair, tell| compare((&old, &new), *pair, args, tell),
    );
    let (mut compared, mut unexplored) = (Vec::new(), Vec::new());
    for (pair, result) in pairs.iter().zip(results) {
        match result {
            Ok(one) => compared.push(one),
            Err(error) => unexplored.push(failed((&old, &new), *pair, error)),
        }
    }
    unexplored.extend(old.skipped().into_iter().chain(new.skipped()));
    unexplored.iter().for_each(Unexplored::tell);
    let report = Report { compared, unexplored, only: only(&old, &new, &pairs) };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", report.to_json()),
        false => report.write_text(out),
    })?;
    Ok(if report.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The programs that are compared: the only ones, or those of one name.
fn pairs<'p>(old: &'p Subjects, new: &'p Subjects) -> Result<Vec<Pair<'p>>, AllError> {
    if let ([left], [right]) = (old.programs.as_slice(), new.programs.as_slice()) {
        return Ok(vec![(left, right)]);
    }
    let both = old.programs.iter().filter(|name| new.programs.contains(name));
    let pairs: Vec<_> = both.map(|name| (name.as_str(), name.as_str())).collect();
    match (pairs.as_slice(), old.programs.first()) {
        ([], Some(name)) => Err(AllError::Missing { new: new.name.clone(), program: name.clone() }),
        _ => Ok(pairs),
    }
}

/// The programs that one object alone has, where none is named.
fn only(old: &Subjects, new: &Subjects, pairs: &[Pair<'_>]) -> Only {
    let of = |part: &Subjects, is_compared: &dyn Fn(&str) -> bool| -> Vec<String> {
        let others = part.programs.iter().filter(|name| !old.is_named && !new.is_named && !is_compared(name));
        others.map(|name| format!("{}:{name}", part.name)).collect()
    };
    Only {
        old: of(old, &|name| pairs.iter().any(|(left, _)| *left == name)),
        new: of(new, &|name| pairs.iter().any(|(_, right)| *right == name)),
    }
}

/// The reason why a pair is not compared.
enum PairError {
    /// Of the old program, or of the new one.
    Program {
        is_new: bool,
        source: paceline::generate::GenerateError,
    },
    Compare(CompareError),
}

fn compare(
    (old, new): (&Subjects, &Subjects),
    (left, right): Pair<'_>,
    args: &DiffArgs,
    tell: &mut dyn FnMut(Progress),
) -> Result<Compared, PairError> {
    let start = Instant::now();
    let program = |is_new| move |source| PairError::Program { is_new, source };
    let first = old.program(left).map_err(program(false))?;
    let second = new.program(right).map_err(program(true))?;
    let (first_object, second_object) = (old.object(), new.object());
    let differences =
        differences((first_object, first), (second_object, second), &args.search.options(), MOST, tell)
            .map_err(PairError::Compare)?;
    let names = [format!("{}:{left}", old.name), format!("{}:{right}", new.name)];
    let (old, new) = ((first_object.clone(), first.clone()), (second_object.clone(), second.clone()));
    Ok(Compared { names, differences, old, new, time: start.elapsed(), most: MOST })
}

fn failed((old, new): (&Subjects, &Subjects), (left, right): Pair<'_>, error: PairError) -> Unexplored {
    let (is_new, source) = match error {
        PairError::Program { is_new, source } => (is_new, source),
        PairError::Compare(CompareError::Program { is_new, error }) => (is_new, error),
        PairError::Compare(source) => {
            let (old, new) = (format!("{}:{left}", old.name), format!("{}:{right}", new.name));
            let error = AllError::Compare { old, new, source: Box::new(source) };
            return Unexplored { program: left.to_owned(), failure: error.into() };
        }
    };
    match is_new {
        true => new.unexplored(right, source),
        false => old.unexplored(left, source),
    }
}
