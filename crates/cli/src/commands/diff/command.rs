//! Running both sides.

use std::process::ExitCode;

use paceline::capture::CaptureReader;

use super::all::all;
use super::args::DiffArgs;
use super::shrink;
use crate::common::capture::Capture;
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::Opened;
use crate::common::report;
use crate::sides::{Differences, Found, SideArgs, SideMaker, find};

/// Compares two programs or chains.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    if args.all {
        return all(args);
    }
    let both = SideArgs { object: &args.object, world: &args.world, unverified: args.unverified };
    let old = SideMaker::new(&args.old, args.old_engine, both);
    let new = SideMaker::new(args.new_target(), args.new_engine, both).in_kernel(args.kernel);
    let ignored = args.ignored();
    let (left, right) = (old.make()?, new.make()?);
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let shrunk = args.shrink.as_deref().map(|path| {
        let mut taken = [&left, &right].map(|side| side.subject().taken.clone()).concat();
        taken.extend(capture.file.clone().into_iter().chain(args.world.file()));
        Ok::<_, Failure>((path, Opened::open_text(path, "--shrink", &mut taken)?))
    });
    let shrunk = shrunk.transpose()?;
    let most = args.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let packets = capture.read_packets(most)?;
    let Found { groups, maps, first, left_out } = find([&old, &new], [left, right], &packets, &ignored)?;
    if !left_out.is_empty() {
        let count = left_out.len();
        console::note(format_args!("{count} packets are left out: the kernel's test run does not take them"));
    }
    let names = [old.name(), new.name()];
    let found = Differences { names, capture: capture.name, packets: packets.len(), groups, maps };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", found.to_json()),
        false => found.write_text(out),
    })?;
    if let (Some((path, file)), Some(first)) = (shrunk, first) {
        let shrunk = shrink::shrink([&old, &new], &packets, first, &left_out, &ignored)?;
        if let Some(shrunk) = shrunk {
            file.write_text(&shrunk.to_toml(args, path))?;
            let plural = if shrunk.len() == 1 { "" } else { "s" };
            console::note(format_args!("{}: a sequence of {} packet{plural}", path.display(), shrunk.len()));
        }
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
