//! Both sides over all packets, as conditions on what packets hold.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::generate::{CompareError, Confirmed, Difference, Differences, Options, differences};
use paceline::packet::to_text;
use paceline::{Collection, Engine, ProgramSpec};
use serde_json::{Value as Json, json};

use super::args::DiffArgs;
use crate::common::console::shown;
use crate::common::failure::{CommandError, Failure};
use crate::common::report;
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
    programs: Vec<String>,
}

impl Part {
    fn open(target: &std::ffi::OsStr, opener: &Opener, args: &DiffArgs) -> Result<Self, Failure> {
        let named = NamedObject::open(target, opener)?;
        let programs = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
        let options = load_options(paceline::DEFAULT_BUDGET, Engine::Plain, &args.object, 1);
        let collection = load(opener, &named.name, named.object, Vec::new(), &options, true)?;
        Ok(Self { name: named.name, collection, programs })
    }

    fn program(&self, name: &str) -> Option<&ProgramSpec> {
        self.collection.object().program(name)
    }
}

/// The differences between a pair of programs.
struct Compared {
    /// Both with their objects.
    names: [String; 2],
    differences: Differences,
    old: ProgramSpec,
    new: ProgramSpec,
    time: Duration,
}

/// Compares the programs of two objects on all inputs.
pub(super) fn all(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.object);
    let old = Part::open(&args.old, &opener, args)?;
    let new = Part::open(args.new_target(), &opener, args)?;
    let mut compared = Vec::new();
    for (left, right) in pairs(&old, &new)? {
        compared.push(compare(&old, &new, (left, right), args)?);
    }
    report::print(|out| match args.json {
        true => writeln!(out, "{}", json!({ "programs": compared.iter().map(to_json).collect::<Vec<_>>() })),
        false => compared.iter().try_for_each(|compared| write_text(out, compared)),
    })?;
    let is_proved =
        compared.iter().all(|one| one.differences.found.is_empty() && one.differences.is_complete());
    Ok(if is_proved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The programs that are compared: the only ones, or those of one name.
fn pairs<'p>(old: &'p Part, new: &'p Part) -> Result<Vec<(&'p str, &'p str)>, AllError> {
    if let ([left], [right]) = (old.programs.as_slice(), new.programs.as_slice()) {
        return Ok(vec![(left, right)]);
    }
    let pair = |name: &'p String| match new.programs.contains(name) {
        true => Ok((name.as_str(), name.as_str())),
        false => Err(AllError::Missing { new: new.name.clone(), program: name.clone() }),
    };
    old.programs.iter().map(pair).collect()
}

fn compare(
    old: &Part,
    new: &Part,
    (left, right): (&str, &str),
    args: &DiffArgs,
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
        differences((first_object, first), (second_object, second), &options, MOST, &mut |_| {}).map_err(
            |source| AllError::Compare {
                old: names[0].clone(),
                new: names[1].clone(),
                source: Box::new(source),
            },
        )?;
    let (old, new) = (first.clone(), second.clone());
    Ok(Compared { names, differences, old, new, time: start.elapsed() })
}

fn write_text(out: &mut dyn Write, compared: &Compared) -> io::Result<()> {
    let Differences { found, unconfirmed, left, is_cut, pairs, paths } = &compared.differences;
    let [old, new] = compared.names.each_ref().map(|name| shown(name));
    let what = match (found.len(), compared.differences.is_complete()) {
        (0, true) => "no input tells them apart".to_owned(),
        (0, false) => "no input was found that tells them apart".to_owned(),
        (1, _) => "differ on 1 input".to_owned(),
        (count, _) => format!("differ on {count} inputs"),
    };
    writeln!(
        out,
        "{old} and {new}: {what}; {pairs} pairs of paths, {paths} paths followed in {:.1?}",
        compared.time
    )?;
    for difference in found {
        let packet = to_text(&difference.old.input.packet);
        writeln!(out, "  {}: {}", sentence(difference), shown(&packet))?;
    }
    if *is_cut {
        writeln!(out, "  and perhaps on more: the search ends after {MOST}")?;
    }
    if !left.is_empty() {
        writeln!(out, "  not known of paths from:")?;
    }
    let mut lines = BTreeSet::new();
    for (is_new, place) in left {
        let (program, which) = if *is_new { (&compared.new, "new") } else { (&compared.old, "old") };
        let line = program.line_of(place.slot).filter(|line| line.line > 0);
        let at = match line {
            Some(line) => format!("{}:{}", line.file.rsplit('/').next().unwrap_or(&line.file), line.line),
            None => format!("{}+{}", program.name, place.slot),
        };
        lines.insert(format!("    {which} {at}  [{}]", place.why));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", shown(line)))?;
    for input in unconfirmed {
        writeln!(out, "  FAILED: an input on which they do not differ: {}", shown(&to_text(&input.packet)))?;
    }
    Ok(())
}

/// The differences as text.
fn sentence(difference: &Difference) -> String {
    let (old, new) = (&difference.old, &difference.new);
    let mut parts = Vec::new();
    if old.verdict != new.verdict {
        parts.push(format!("{}, now {}", old.verdict.name(), new.verdict.name()));
    } else {
        parts.push(old.verdict.name().to_owned());
        if old.code != new.code {
            parts.push(format!("returns {}, now {}", old.code, new.code));
        }
    }
    if old.bytes.len() != new.bytes.len() {
        parts.push(format!("{} bytes, now {}", old.bytes.len(), new.bytes.len()));
    } else if old.bytes != new.bytes {
        parts.push("other bytes".to_owned());
    }
    if old.redirect != new.redirect {
        parts.push("another target".to_owned());
    }
    // The same run on both, so that only other changes are left.
    if parts.len() == 1 && old.verdict == new.verdict {
        parts.push("other elements in maps".to_owned());
    }
    parts.join(", ")
}

fn to_json(compared: &Compared) -> Json {
    let differences = &compared.differences;
    let side = |run: &Confirmed| {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        json!({ "verdict": run.verdict.name(), "code": run.code, "bytes": hex(&run.bytes) })
    };
    let found = differences.found.iter().map(|difference| {
        let input = &difference.old.input;
        let packet: String = input.packet.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "what": sentence(difference),
            "packet": packet,
            "time_ns": input.time_ns,
            "seed": input.seed,
            "old": side(&difference.old),
            "new": side(&difference.new),
        })
    });
    let left = differences.left.iter().map(|(is_new, place)| {
        json!({ "side": if *is_new { "new" } else { "old" }, "slot": place.slot, "reason": place.why.to_string() })
    });
    json!({
        "old": compared.names[0],
        "new": compared.names[1],
        "differ": found.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "failed": differences.unconfirmed.len(),
        "proved": differences.found.is_empty() && differences.is_complete(),
        "pairs": differences.pairs,
        "paths": differences.paths,
    })
}
