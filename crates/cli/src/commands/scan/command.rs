//! Scans captures.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use paceline::Collection;
use paceline_archive::{Opened, Report as Scanned, Totals, Worker, parts, scan as scan_all};

use super::args::ScanArgs;
use super::captures::open;
use super::error::ScanError;
use super::outputs::Outputs;
use super::program::Machines;
use super::report::Report;
use crate::common::failure::Failure;
use crate::common::files::{Taken, is_stdout};
use crate::common::report::Report as _;
use crate::common::watch::{INTERRUPTED, Watch};

/// Scans captures.
pub(crate) fn scan(args: &ScanArgs) -> Result<ExitCode, Failure> {
    args.check().unwrap_or_else(|usage| usage.exit());
    let captures = open(&args.captures, args.expression.as_str(), args.engine())?;
    let count = args.workers();
    let machines = args.program.as_deref().map(|target| Machines::load(args, target, count)).transpose()?;
    let (machines, workers) = match machines {
        Some((machines, workers)) => (Some(machines), workers),
        None => (None, (0..count).map(|_| Worker::default()).collect()),
    };
    if machines.is_some() {
        captures.iter().try_for_each(Opened::check_for_programs).map_err(ScanError::from)?;
    }
    let watch = Watch::start(None, Arc::default())?;
    let mut outputs = Outputs::open(args, &captures, taken(args, machines.as_ref()))?;
    let start = Instant::now();
    let (scanned, ended) = run(&captures, workers, &mut outputs, watch, machines.is_some());
    let time = start.elapsed();
    // Also after an error, so that the packets before it can be read.
    let finished = outputs.finish().map_err(Failure::from);
    let ended = ended.and(finished);
    if ended.as_ref().is_err_and(Failure::is_closed_pipe) {
        return Ok(ExitCode::SUCCESS);
    }
    let (merged, ended) = match (ended, machines.as_ref().map(Machines::merged)) {
        (Ok(()), Some(Ok(maps))) => (maps, Ok(())),
        (Ok(()), Some(Err(error))) => (None, Err(error.into())),
        (ended, _) => (None, ended),
    };
    let report = Report {
        scanned: &scanned,
        captures: &captures,
        time,
        engine: args.engine(),
        workers: count,
        program: machines.as_ref().map(|machines| (machines.name.as_str(), machines.program.as_str())),
        maps: merged.filter(|collection: &&Collection| args.maps && !collection.maps().is_empty()),
        error: ended.as_ref().err(),
    };
    let aside =
        args.print || [&args.out, &args.parquet].into_iter().flatten().any(|path: &PathBuf| is_stdout(path));
    let printed = report.print(args.json, aside);
    ended.map_err(Failure::reported).and(printed)?;
    if let Some(losses) = ScanError::of_losses(&scanned.captures) {
        return Err(Failure::from(losses).reported());
    }
    Ok(if scanned.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Files that no output may replace.
fn taken(args: &ScanArgs, machines: Option<&Machines>) -> Vec<Taken> {
    let of_capture = |path: &PathBuf| Taken::of_path(path, &format!("the capture {}", path.display()));
    let of_program = machines.map(|machines| machines.taken.clone()).unwrap_or_default();
    args.captures.iter().filter_map(of_capture).chain(of_program).collect()
}

/// Scans, and writes what matches. The counts of a scan that failed are those of nothing.
fn run(
    captures: &[Opened],
    workers: Vec<Worker>,
    outputs: &mut Outputs,
    mut watch: Watch,
    has_program: bool,
) -> (Scanned, Result<(), Failure>) {
    let nothing = || Scanned { captures: vec![Totals::default(); captures.len()], interrupted: false };
    let parts = match parts(captures, workers.len(), has_program) {
        Ok(parts) => parts,
        Err(error) => return (nothing(), Err(ScanError::from(error).into())),
    };
    let (mut packets, mut written) = (0, Ok(()));
    let scanned = scan_all(captures, parts, workers, outputs.wanted(), |rows| {
        packets += rows.read;
        let name = &captures[rows.capture].source.name;
        if let Err(error) = outputs.write(&rows, name) {
            written = Err(error.into());
            return ControlFlow::Break(());
        }
        watch.look(packets)
    });
    let interrupted = watch.finish();
    match scanned {
        Ok(scanned) => (Scanned { interrupted, ..scanned }, written),
        Err(error) => (nothing(), Err(ScanError::from(error).into())),
    }
}
