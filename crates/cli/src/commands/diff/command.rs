//! Running both sides.

use std::process::ExitCode;

use paceline::capture::CaptureReader;

use super::args::DiffArgs;
use super::compare::compare;
use super::group::{Changed, Explained, groups};
use super::report::Report;
use super::side::SideMaker;
use super::{maps, shrink};
use crate::common::capture::Capture;
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::Opened;
use crate::common::report;

/// Most packets that are explained; others are grouped by what differs alone.
const EXPLAINED: usize = 2_000;

/// Compares two programs or chains.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let old = SideMaker::new(&args.old, args.old_engine, args);
    let new = SideMaker::new(&args.new, args.new_engine, args);
    let (mut left, mut right) = (old.make()?, new.make()?);
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let shrunk = args.shrink.as_deref().map(|path| {
        let mut taken = [&left, &right].map(|side| side.subject().taken.clone()).concat();
        taken.extend(capture.file.clone().into_iter().chain(args.world.file()));
        Ok::<_, Failure>((path, Opened::open_text(path, "--shrink", &mut taken)?))
    });
    let shrunk = shrunk.transpose()?;
    let most = args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let packets = capture.read_packets(most)?;
    let mut changed = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let fates = (left.run(number, packet)?, right.run(number, packet)?);
        changed.extend(compare(&fates.0, &fates.1, &args.ignore).map(|change| Changed { number, change }));
    }
    let wanted: Vec<usize> = changed.iter().take(EXPLAINED).map(|changed| changed.number).collect();
    let explain = |maker: &SideMaker<'_>| -> Result<Explained, Failure> {
        match wanted.is_empty() {
            true => Ok(Explained::new()),
            false => Ok(maker.make()?.explain(&packets, &wanted).into_iter().collect()),
        }
    };
    let groups = groups(&changed, &explain(&old)?, &explain(&new)?);
    let maps = maps::changes([&old, &new], [&left, &right], &packets, &args.ignore)?;
    let names = [old.name(), new.name()];
    let found = Report { names, capture: capture.name, packets: packets.len(), groups, maps };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", found.to_json()),
        false => found.write_text(out),
    })?;
    if let (Some((path, file)), Some(first)) = (shrunk, changed.first()) {
        let shrunk = shrink::shrink([&old, &new], &packets, first.number, &args.ignore)?;
        if let Some(shrunk) = shrunk {
            file.write_text(&shrunk.to_toml(args, path))?;
            let plural = if shrunk.len() == 1 { "" } else { "s" };
            console::note(format_args!("{}: a sequence of {} packet{plural}", path.display(), shrunk.len()));
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
