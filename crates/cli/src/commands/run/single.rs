//! Runs of a single program.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

use paceline::capture::{CaptureReader, CaptureWriter};
use paceline::coverage::Report as CoverageReport;
use paceline::explain::{ChainExplainer, Explainer};
use paceline::{
    Collection, Engine, Meaning, Outputs, Program, RanAs, ReplayError, ReplayOptions, Tally, replay,
    replay_on,
};

use super::args::RunArgs;
use super::events::Events;
use super::fault::FaultReport;
use super::outputs::{self, OutputNames, Writers};
use super::redirects::Counting;
use super::report::{Report, Run};
use super::setup::{announce, finish, log_by_packet, save_to};
use super::verdicts::{Explaining, Logging, VerdictLog};
use crate::common::capture::{Capture, CaptureError};
use crate::common::failure::Failure;
use crate::common::files::FileError;
use crate::common::packets::When;
use crate::common::report::Report as _;
use crate::common::watch::{INTERRUPTED, Watch};
use crate::maps;
use crate::object::{NamedObject, NamedProgramError, Opener, load, load_options, program_of};
use crate::world::World;

/// Runs a program over a capture.
pub(super) fn run(args: &RunArgs, engine: Engine) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.source.object).counting(args.counting()).explaining(args.why);
    let named = match args.source.targets.first() {
        Some(target) => NamedObject::open(target, &opener)?,
        None => NamedObject::built_in(&opener)?,
    };
    named.programs()?;
    let NamedObject { name, object, program: wanted, file } = named;
    let options = load_options(engine, &args.source.object, args.cpus());
    let collection = load(&opener, &name, object, Vec::new(), &options, args.unverified)?;
    let program = program_of(&collection, wanted.as_deref(), args.unverified)
        .map_err(|error| NamedProgramError::new(&name, collection.object(), error))?;
    let subject = Loaded { name, collection };
    let world = World::new(&args.world)?;
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let inputs = file.iter().chain(&capture.file).cloned();
    let network = args.world.file();
    let taken: Vec<_> = inputs.chain(maps::identities(&args.source.object.files())).chain(network).collect();
    let (save, taken) = save_to(args, taken)?;
    let watch = Watch::start(capture.size, capture.position.clone())?;
    let (mut writers, names) = outputs::create(args, capture.reader.header(), taken)?;
    let coverage = writers.coverage.take();
    let events = Events::new(args, &[&subject.collection], writers.events.take())?;
    announce(args, &subject.name, &capture);
    world.announce(&program);

    let explaining = args.why.then(|| {
        let explainer = Explainer::new(program.clone(), subject.collection.object().shared_btf());
        Explaining::new(ChainExplainer::of_program(explainer))
    });
    let extras = Extras { events: events.as_ref(), explaining };
    let (mut run, ended, logs) = replay_all(args, &program, &world, &mut capture, writers, extras, watch);
    let ended =
        ended.map_err(|error| failure(error, &program, &subject, &capture, &names, run.tally.packets));
    let ended = finish(events, &mut run, ended);
    if ended.as_ref().is_err_and(Failure::is_closed_pipe) {
        return ended.map(|()| ExitCode::SUCCESS);
    }
    let interrupted = run.interrupted;
    let report = Report {
        run,
        object: &subject.name,
        program: &program.spec().name,
        capture: &capture.name,
        engine: program.engine(),
        maps: args.maps.then_some(&subject.collection),
        error: ended.as_ref().err(),
    };
    let printed = report.print(args.json, names.use_stdout());
    ended.map_err(Failure::reported).and(printed)?;
    logs.into_iter().try_for_each(VerdictLog::finish)?;
    save.map_or(Ok(()), |save| save.save(&[(&subject.name, &subject.collection)]))?;
    if let Some(file) = coverage {
        file.write(&CoverageReport::new(&subject.collection.coverage()), &subject.name)?;
    }
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The subject of a run, and its name.
struct Loaded {
    name: String,
    collection: Collection,
}

/// Receivers of events and explanations.
struct Extras<'a> {
    events: Option<&'a Events>,
    explaining: Option<Explaining>,
}

fn replay_all(
    args: &RunArgs,
    program: &Program,
    world: &World,
    capture: &mut Capture,
    writers: Writers,
    extras: Extras<'_>,
    mut watch: Watch,
) -> (Run, Result<(), ReplayError>, Vec<VerdictLog>) {
    let packet_by_packet = log_by_packet(args) || world.runs_packet_by_packet(program.maps());
    let options = ReplayOptions::default()
        .count(args.count)
        .origin(world.origin())
        .packet_by_packet(packet_by_packet)
        .cpus(args.cpus());
    let mut outputs = Outputs { passed: writers.passed, dropped: writers.dropped };
    if program.spec().kind.rules().meaning == Meaning::BytesKept {
        // Packets that a socket filter cuts were as long on the wire as before.
        outputs.passed.iter_mut().for_each(CaptureWriter::keep_wire_length);
    }
    let start = Instant::now();
    let Extras { events, mut explaining } = extras;
    let mut logs = writers.verdicts;
    let ran = RanAs::Program(program.spec().kind.rules().meaning);
    let mut counting: Vec<_> = (0..args.workers())
        .map(|_| {
            let (logs, explaining) = (std::mem::take(&mut logs), explaining.take());
            Counting::new(Logging { runner: program, ran, logs, explaining })
        })
        .collect();
    let (tally, ended) = match counting.as_mut_slice() {
        [counting] => {
            let mut host = world.host();
            if let Some(events) = events {
                events.attach(&mut host);
            }
            replay(counting, &mut host, &mut capture.reader, outputs, options, |tally| {
                if events.is_some_and(|events| events.drain().is_break()) {
                    return ControlFlow::Break(());
                }
                watch.look(tally.packets)
            })
        }
        several => {
            let workers = several.iter_mut().map(|counting| (counting, world.host())).collect();
            let look = |tally: &Tally| watch.look(tally.packets);
            replay_on(workers, &mut capture.reader, outputs, options, look)
        }
    };
    let logs = counting.iter_mut().flat_map(|counting| std::mem::take(&mut counting.runner.logs)).collect();
    let reasons = counting.iter_mut().find_map(|counting| counting.runner.explaining.take());
    let reasons = reasons.map(|explaining| explaining.reasons);
    let redirects = counting.into_iter().map(|counting| counting.redirects).sum();
    let (time, interrupted) = (start.elapsed(), watch.finish());
    (Run { tally, time, interrupted, events: None, redirects, reasons }, ended, logs)
}

/// Adds file names to an error.
fn failure(
    error: ReplayError,
    program: &Program,
    subject: &Loaded,
    capture: &Capture,
    names: &OutputNames,
    processed: u64,
) -> Failure {
    match error {
        ReplayError::Read(source) => {
            CaptureError::Read { name: capture.name.clone(), source: Box::new(source), processed }.into()
        }
        ReplayError::Fault { packet, fault } => {
            let report =
                FaultReport::new(subject.collection.object(), program.spec(), When::In(packet), fault);
            report.of(&subject.name, &capture.name).into()
        }
        ReplayError::Timer { packet, fault } => {
            let report =
                FaultReport::new(subject.collection.object(), program.spec(), When::After(packet), fault);
            report.of(&subject.name, &capture.name).into()
        }
        ReplayError::WritePassed(source) => FileError::Write { name: names.passed(), source }.into(),
        ReplayError::WriteDropped(source) => FileError::Write { name: names.dropped(), source }.into(),
    }
}
