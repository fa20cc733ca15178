//! Running both sides.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::args::DiffArgs;
use super::compare::compare;
use super::group::{Changed, Explained, groups};
use super::packets::Packets;
use super::report::Report;
use super::side::SideMaker;
use super::{maps, shrink};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::report;

/// Most packets that are explained; others are grouped by what differs alone.
const EXPLAINED: usize = 2_000;

/// The test file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
struct WriteError {
    name: String,
    source: io::Error,
}

impl CommandError for WriteError {}

/// Compares two programs or chains.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let old = SideMaker::new(&args.old, args.old_engine, args);
    let new = SideMaker::new(&args.new, args.new_engine, args);
    let (mut left, mut right) = (old.make()?, new.make()?);
    let packets = Packets::read(args.input.as_deref(), args.count)?;
    let mut changed = Vec::new();
    for (number, packet) in packets.all.iter().enumerate() {
        let fates = (left.run(number, packet)?, right.run(number, packet)?);
        changed.extend(compare(&fates.0, &fates.1, &args.ignore).map(|change| Changed { number, change }));
    }
    let wanted: Vec<usize> = changed.iter().take(EXPLAINED).map(|changed| changed.number).collect();
    let explain = |maker: &SideMaker<'_>| -> Result<Explained, Failure> {
        match wanted.is_empty() {
            true => Ok(Explained::new()),
            false => Ok(maker.make()?.explain(&packets.all, &wanted).into_iter().collect()),
        }
    };
    let groups = groups(&changed, &explain(&old)?, &explain(&new)?);
    let maps = maps::changes([&old, &new], [&left, &right], &packets.all, &args.ignore)?;
    let names = [old.name(), new.name()];
    let found = Report { names, capture: packets.name, packets: packets.all.len(), groups, maps };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", found.to_json()),
        false => found.write_text(out),
    })?;
    if let (Some(path), Some(first)) = (&args.shrink, changed.first()) {
        let shrunk = shrink::shrink([&old, &new], &packets.all, first.number, &args.ignore)?;
        if let Some(shrunk) = shrunk {
            write(path, &shrunk.to_toml(args, path))?;
            let plural = if shrunk.len() == 1 { "" } else { "s" };
            console::note(format_args!("{}: a sequence of {} packet{plural}", path.display(), shrunk.len()));
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, text: &str) -> Result<(), WriteError> {
    fs::write(path, text).map_err(|source| WriteError { name: path.display().to_string(), source })
}
