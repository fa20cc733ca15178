//! Chains over captures.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use paceline::capture::CaptureReader;
use paceline::coverage::Report as CoverageReport;
use paceline::{
    ChainWorker, Engine, Host, Outputs, ReplayError, ReplayOptions, Runner, Tally, replay, replay_on,
};
use signal_hook::consts::SIGHUP;

use super::args::RunArgs;
use super::events::Events;
use super::outputs::{self, OutputNames, Writers};
use super::redirects::Counting;
use super::report::{ChainReport, Run};
use super::setup::{announce, finish, log_by_packet, save_to};
use super::verdicts::{Explaining, Logging, VerdictLog};
use crate::chain::{
    ChainError, LayoutAsJson, LoadHow, Loaded, Tracer, load, reload, write_layout, write_warnings,
};
use crate::common::capture::{Capture, CaptureError};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::FileError;
use crate::common::packets::When;
use crate::common::report::{self, Report as _};
use crate::common::watch::{INTERRUPTED, SignalError, Watch};
use crate::object::Opener;
use crate::world::World;

/// Whether more is asked for than to run one program.
pub(super) fn is_wanted(args: &RunArgs) -> bool {
    args.source.targets.len() > 1
        || args.source.chain_file().is_some()
        || args.source.calls.is_some()
        || args.stats
        || args.trace.is_some()
        || args.dry_run
}

/// A worker that counts what programs return.
fn counted(loaded: &Loaded) -> Result<ChainWorker, ChainError> {
    let worker = loaded.live.worker().counted();
    worker.map_err(|source| ChainError::Change { name: loaded.name.clone(), source })
}

/// Runs a chain over a capture.
pub(super) fn run(args: &RunArgs, engine: Engine) -> Result<ExitCode, Failure> {
    let how = LoadHow {
        engine,
        unverified: args.unverified,
        opener: Rc::new(Opener::new(&args.source.object).counting(args.counting()).explaining(args.why)),
        cpus: args.cpus(),
    };
    let loaded = load(&args.source, &how)?;
    let args = &with_port(args, &loaded);
    if args.dry_run {
        return dry_run(args, &loaded);
    }
    warn(&loaded, args);
    let world = World::new(&args.world)?;
    let counts = args.stats && args.trace.is_none();
    let worker = if counts { counted(&loaded)? } else { loaded.live.worker() };
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let network = args.world.file();
    let taken: Vec<_> = loaded.taken.iter().chain(&capture.file).cloned().chain(network).collect();
    let (save, taken) = save_to(args, taken)?;
    let watch = Watch::start(capture.size, capture.position.clone())?;
    let (mut writers, names) = outputs::create(args, capture.reader.header(), taken)?;
    let coverage = writers.coverage.take();
    let collections: Vec<_> = loaded.parts.iter().map(|part| &part.collection).collect();
    let events = Events::new(args, &collections, writers.events.take())?;
    announce(args, &loaded.name, &capture);
    loaded.live.members().iter().for_each(|member| world.announce(member.program()));
    let mut runner = match &args.trace {
        Some(packets) => Running::Traced(Tracer::new(worker, packets.clone())),
        None => Running::Plain(worker),
    };
    let mut loaded = loaded;
    let explaining = args.why.then(|| Explaining::new(loaded.explainer()));
    let replay = Replay { args, how: &how, world: &world, events: events.as_ref(), explaining };
    let (mut run, ended, logs) = replay.run(&mut loaded, &mut runner, &mut capture, writers, watch)?;
    let ended = ended.map_err(|error| failure(error, &loaded, &capture, &names, run.tally.packets));
    let ended = finish(events, &mut run, ended);
    if ended.as_ref().is_err_and(Failure::is_closed_pipe) {
        return ended.map(|()| ExitCode::SUCCESS);
    }
    let tracer = match runner {
        Running::Traced(tracer) => Some(tracer),
        Running::Plain(worker) => {
            // A worker publishes its counts when it is dropped.
            drop(worker);
            None
        }
    };
    let interrupted = run.interrupted;
    let told = ChainReport {
        run,
        chain: &loaded,
        layout: loaded.live.layout(),
        capture: &capture.name,
        engine,
        status: args.stats.then(|| loaded.live.status()),
        traces: tracer.as_ref(),
        maps: args.maps,
        is_file: args.source.chain_file().is_some(),
        error: ended.as_ref().err(),
    };
    let printed = told.print(args.json, names.use_stdout());
    ended.map_err(Failure::reported).and(printed)?;
    let objects: Vec<_> = loaded.parts.iter().map(|part| (part.name.as_str(), &part.collection)).collect();
    logs.into_iter().try_for_each(VerdictLog::finish)?;
    save.map_or(Ok(()), |save| save.save(&objects))?;
    if let Some(file) = coverage {
        let counts: Vec<_> = loaded.parts.iter().flat_map(|part| part.collection.coverage()).collect();
        file.write(&CoverageReport::new(&counts), &loaded.name)?;
    }
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The arguments, with the captures of the chain file where the command line names none.
fn with_port(args: &RunArgs, loaded: &Loaded) -> RunArgs {
    let mut args = args.clone();
    args.input = args.input.or_else(|| loaded.input.clone());
    args.out = args.out.or_else(|| loaded.out.clone());
    args.drops = args.drops.or_else(|| loaded.drops.clone());
    args
}

fn dry_run(args: &RunArgs, loaded: &Loaded) -> Result<ExitCode, Failure> {
    let layout = loaded.live.layout();
    report::print(|out| match args.json {
        true => writeln!(out, "{}", LayoutAsJson(&layout).to_json()),
        false => write_layout(out, &layout),
    })
}

/// Prints warnings on standard error: an order that differs from the given one, and libxdp's final pass.
fn warn(loaded: &Loaded, args: &RunArgs) {
    let layout = loaded.live.layout();
    let given: Vec<_> = loaded.origins.iter().map(|(name, _)| name.as_str()).collect();
    if args.source.targets.len() > 1 && args.source.calls.is_none() && layout.names != given {
        console::note(format_args!(
            "programs run by priority: {}; `--order given` runs them as given",
            layout.names.join(", ")
        ));
    }
    console::warnings(|out| write_warnings(out, &layout));
}

/// The runner of bursts.
enum Running {
    Plain(ChainWorker),
    Traced(Tracer),
}

impl Runner for &mut Running {
    fn run_burst(
        &mut self,
        burst: &mut paceline::Burst,
        host: &mut Host,
    ) -> Result<(), paceline::BurstFault> {
        match self {
            Running::Plain(worker) => worker.run_burst(burst, host),
            Running::Traced(tracer) => tracer.run_burst(burst, host),
        }
    }
}

/// A run, how it ended, and the logs of its verdicts.
type Replayed = (Run, Result<(), ReplayError>, Vec<VerdictLog>);

/// All that a run has beside the chain and the packets.
struct Replay<'a> {
    args: &'a RunArgs,
    how: &'a LoadHow,
    world: &'a World,
    events: Option<&'a Events>,
    explaining: Option<Explaining>,
}

impl Replay<'_> {
    fn run(
        self,
        loaded: &mut Loaded,
        runner: &mut Running,
        capture: &mut Capture,
        writers: Writers,
        mut watch: Watch,
    ) -> Result<Replayed, SignalError> {
        let again = Arc::new(AtomicBool::new(false));
        // Explanations are those of the chain as it is now.
        if self.args.source.chain_file().is_some() && self.explaining.is_none() {
            signal_hook::flag::register(SIGHUP, Arc::clone(&again)).map_err(SignalError)?;
        }
        let mut maps = loaded.parts.iter().map(|part| part.collection.maps());
        let packet_by_packet =
            log_by_packet(self.args) || maps.any(|maps| self.world.runs_packet_by_packet(maps));
        let options = ReplayOptions::default()
            .count(self.args.count)
            .origin(self.world.origin())
            .packet_by_packet(packet_by_packet)
            .cpus(self.args.cpus());
        let (chain, ran) = (loaded.live.clone(), loaded.ran_as());
        let outputs = Outputs { passed: writers.passed, dropped: writers.dropped };
        let start = Instant::now();
        let observe = |tally: &Tally| {
            if self.events.is_some_and(|events| events.drain().is_break()) {
                return ControlFlow::Break(());
            }
            if again.swap(false, Ordering::Relaxed) {
                reload(&self.args.source, self.how, loaded, tally.packets, |_| Ok(()));
            }
            watch.look(tally.packets)
        };
        let mut several: Vec<_> = match self.args.workers() {
            1 => Vec::new(),
            workers => (0..workers).map(|_| Counting::new(chain.worker())).collect(),
        };
        let explaining = self.explaining;
        let mut counting = Counting::new(Logging { runner, ran, logs: writers.verdicts, explaining });
        let (tally, ended) = if several.is_empty() {
            let mut host = self.world.host();
            if let Some(events) = self.events {
                events.attach(&mut host);
            }
            replay(&mut counting, &mut host, &mut capture.reader, outputs, options, observe)
        } else {
            let workers = several.iter_mut().map(|one| (one, self.world.host())).collect();
            replay_on(workers, &mut capture.reader, outputs, options, observe)
        };
        let (time, interrupted) = (start.elapsed(), watch.finish());
        let several = several.into_iter().map(|one| one.redirects);
        let logs = std::mem::take(&mut counting.runner.logs);
        let reasons = counting.runner.explaining.take().map(|explaining| explaining.reasons);
        let redirects = several.chain([counting.redirects]).sum();
        Ok((Run { tally, time, interrupted, events: None, redirects, reasons }, ended, logs))
    }
}

/// Adds file names to an error.
fn failure(
    error: ReplayError,
    loaded: &Loaded,
    capture: &Capture,
    names: &OutputNames,
    processed: u64,
) -> Failure {
    let fault_of = |when, fault| {
        let (chain, capture) = (loaded.name.clone(), capture.name.clone());
        ChainError::Fault { chain, when, capture, fault: Box::new(fault) }.into()
    };
    match error {
        ReplayError::Read(source) => {
            CaptureError::Read { name: capture.name.clone(), source: Box::new(source), processed }.into()
        }
        ReplayError::Fault { packet, fault } => fault_of(When::In(packet), fault),
        ReplayError::Timer { packet, fault } => fault_of(When::After(packet), fault),
        ReplayError::WritePassed(source) => FileError::Write { name: names.passed(), source }.into(),
        ReplayError::WriteDropped(source) => FileError::Write { name: names.dropped(), source }.into(),
    }
}
