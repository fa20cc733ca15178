//! Both sides over all packets, as conditions on what packets hold.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::generate::{CompareError, Options, differences};
use paceline::{Collection, Engine, ProgramSpec};

use super::args::DiffArgs;
use super::told::{Compared, Only, Report};
use crate::common::failure::{CommandError, Failure};
use crate::common::report;
use crate::inputs::{Bar, Words, only_variables};
use crate::object::{NamedObject, Opener, load, load_options};

/// Most inputs of a program that are told.
const MOST: usize = 20;

/// The programs cannot be compared.
#[derive(Debug, thiserror::Error)]
enum AllError {
    #[error("{old} and {new}: {source}")]
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

/// One of the two sides.
struct Part {
    name: String,
    collection: Collection,
    /// Whether the command line names a program.
    is_named: bool,
    programs: Vec<String>,
}

impl Part {
    fn open(target: &std::ffi::OsStr, opener: &Opener, args: &DiffArgs) -> Result<Self, Failure> {
        let named = NamedObject::open(target, opener)?;
        only_variables(&args.object.files(), &named.object)?;
        let programs = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
        let is_named = named.program.is_some();
        let options = load_options(paceline::DEFAULT_BUDGET, Engine::Plain, &args.object, 1);
        let collection = load(opener, &named.name, named.object, Vec::new(), &options, true)?;
        Ok(Self { name: named.name, collection, is_named, programs })
    }

    fn program(&self, name: &str) -> Option<&ProgramSpec> {
        self.collection.object().program(name)
    }
}

/// Compares the programs of two objects on all inputs.
pub(super) fn all(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.object);
    let old = Part::open(&args.old, &opener, args)?;
    let new = Part::open(args.new_target(), &opener, args)?;
    let pairs = pairs(&old, &new)?;
    let bar = Bar::new(pairs.len(), Words { reached: "differences", open: "open" });
    let compare = |pair: &(&str, &str)| {
        let compared = compare(&old, &new, *pair, args, &bar);
        bar.done();
        compared
    };
    let compared = pairs.iter().map(compare).collect::<Result<Vec<_>, _>>();
    bar.finish();
    let report = Report { compared: compared?, only: only(&old, &new, &pairs) };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", report.to_json()),
        false => report.write_text(out),
    })?;
    Ok(if report.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The programs that are compared: the only ones, or those of one name.
fn pairs<'p>(old: &'p Part, new: &'p Part) -> Result<Vec<(&'p str, &'p str)>, AllError> {
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
fn only(old: &Part, new: &Part, pairs: &[(&str, &str)]) -> Only {
    let of = |part: &Part, is_compared: &dyn Fn(&str) -> bool| -> Vec<String> {
        let others = part.programs.iter().filter(|name| !old.is_named && !new.is_named && !is_compared(name));
        others.map(|name| format!("{}:{name}", part.name)).collect()
    };
    Only {
        old: of(old, &|name| pairs.iter().any(|(left, _)| *left == name)),
        new: of(new, &|name| pairs.iter().any(|(_, right)| *right == name)),
    }
}

fn compare(
    old: &Part,
    new: &Part,
    (left, right): (&str, &str),
    args: &DiffArgs,
    bar: &Bar,
) -> Result<Compared, Failure> {
    let names = [format!("{}:{left}", old.name), format!("{}:{right}", new.name)];
    let missing = |part: &Part, program: &str| AllError::Missing {
        new: part.name.clone(),
        program: program.to_owned(),
    };
    let first = old.program(left).ok_or_else(|| missing(old, left))?;
    let second = new.program(right).ok_or_else(|| missing(new, right))?;
    let start = Instant::now();
    let options = Options { time: Duration::from_secs(args.limit), ..Options::default() };
    let (first_object, second_object) = (old.collection.object(), new.collection.object());
    let differences =
        differences((first_object, first), (second_object, second), &options, MOST, &mut |progress| {
            bar.tell(left, progress)
        })
        .map_err(|source| AllError::Compare {
            old: names[0].clone(),
            new: names[1].clone(),
            source: Box::new(source),
        })?;
    let (old, new) = ((first_object.clone(), first.clone()), (second_object.clone(), second.clone()));
    Ok(Compared { names, differences, old, new, time: start.elapsed(), most: MOST })
}
