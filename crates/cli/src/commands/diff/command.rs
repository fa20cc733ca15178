//! Running both sides.

use std::collections::BTreeSet;
use std::process::ExitCode;

use paceline::capture::CaptureReader;

use super::args::DiffArgs;
use super::compare::compare;
use super::group::{Changed, Explained, groups};
use super::report::Report;
use super::side::{SideMaker, run_both};
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
    let new = SideMaker::new(args.new_target(), args.new_engine, args).in_kernel(args.kernel);
    let ignored = args.ignored();
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
    let (mut changed, mut left_out) = (Vec::new(), BTreeSet::new());
    for (number, packet) in packets.iter().enumerate() {
        match run_both(&mut left, &mut right, number, packet)? {
            Some(fates) => {
                changed.extend(compare(&fates, &ignored).map(|change| Changed { number, change }));
            }
            None => drop(left_out.insert(number)),
        }
    }
    if !left_out.is_empty() {
        let count = left_out.len();
        console::note(format_args!("{count} packets are left out: the kernel's test run does not take them"));
    }
    let wanted: Vec<usize> = changed.iter().take(EXPLAINED).map(|changed| changed.number).collect();
    let explain = |maker: &SideMaker<'_>| -> Result<Explained, Failure> {
        match wanted.is_empty() || !maker.is_explained() {
            true => Ok(Explained::new()),
            false => Ok(maker.make()?.explain(&packets, &wanted, &left_out).into_iter().collect()),
        }
    };
    let groups = groups(&changed, &explain(&old)?, &explain(&new)?);
    let maps = maps::changes([&old, &new], [&left, &right], &packets, &ignored)?;
    let names = [old.name(), new.name()];
    let found = Report { names, capture: capture.name, packets: packets.len(), groups, maps };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", found.to_json()),
        false => found.write_text(out),
    })?;
    if let (Some((path, file)), Some(first)) = (shrunk, changed.first()) {
        let shrunk = shrink::shrink([&old, &new], &packets, first.number, &left_out, &ignored)?;
        if let Some(shrunk) = shrunk {
            file.write_text(&shrunk.to_toml(args, path))?;
            let plural = if shrunk.len() == 1 { "" } else { "s" };
            console::note(format_args!("{}: a sequence of {} packet{plural}", path.display(), shrunk.len()));
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
