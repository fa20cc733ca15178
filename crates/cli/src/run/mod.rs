//! `paceline run`.

mod chain;
mod events;
mod fault;
mod outputs;
mod redirects;
mod report;
mod source;
mod watch;
mod world;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use paceline::capture::CaptureReader;
use paceline::{Collection, Map, Meaning, Outputs, Program, ReplayError, ReplayOptions, replay};

use crate::args::{ClockArg, RunArgs};
use crate::console::Report as _;
use crate::failure::Failure;
use crate::maps::{self, SaveTo, SavedMaps};
use crate::object::{Opener, load, load_options, program_of};

use events::Events;
pub(crate) use fault::{FaultReport, When, processed};
pub(crate) use outputs::{Opened, Taken, name};
use outputs::{OutputNames, Writers};
use redirects::Counting;
pub(crate) use report::Rate;
use report::{Report, Run};
use source::Subject;
pub(crate) use source::{Capture, built_in};
pub(crate) use watch::Watch;
use world::World;

/// What a shell shows for a command that ended by an interrupt: 128 and the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a program over a capture.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let engine = args.engine().unwrap_or_else(|usage| usage.exit());
    if chain::is_wanted(args) {
        return chain::run(args, engine);
    }
    let opener = Opener::new(&args.source.object);
    let subject = Subject::open(args.source.targets.first().map(|target| target.as_os_str()), &opener)?;
    let Subject { name, object, program: wanted, file } = subject;
    let no_program = |source| Failure::Program { name: name.clone(), source: Box::new(source) };
    object.programs_named(wanted.as_deref()).map_err(no_program)?;
    let restored = match &args.restore_maps {
        Some(path) => SavedMaps::read(path)?.of(&object, None)?,
        None => Vec::new(),
    };
    let options = load_options(args.budget, engine, args.source.object.map_memory, args.cpus.into());
    let collection = load(&opener, &name, object, restored, &options, args.unverified)?;
    let program = program_of(&collection, wanted.as_deref(), args.unverified)
        .map_err(|error| Failure::no_program(&name, collection.object(), error))
        .and_then(|program| check_action(&name, &program).map(|()| program))?;
    let subject = Loaded { name, collection };
    let world = World::new(args)?;
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let inputs = file.iter().chain(&capture.file).cloned();
    let network = args.network.iter().filter_map(|path| Taken::of_path(path, "the network"));
    let taken: Vec<_> = inputs.chain(maps::identities(&args.source.object.files())).chain(network).collect();
    let (save, taken) = save_to(args, taken)?;
    let watch = Watch::start(capture.size, capture.position.clone())?;
    let (mut writers, names) = outputs::create(args, capture.reader.header(), taken)?;
    let events = Events::new(args, &[&subject.collection], writers.events.take())?;
    source::announce(args, &subject.name, &capture);
    world.announce(&program);

    let (mut run, ended) = replay_all(args, &program, &world, &mut capture, writers, events.as_ref(), watch);
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
    ended.map_err(Failure::told).and(printed)?;
    save.map_or(Ok(()), |save| save.save(&[(&subject.name, &subject.collection)]))?;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Where the maps are to go, and the files that no output may replace, which are also that one and what maps are restored from:
/// the same, mostly.
fn save_to(args: &RunArgs, mut taken: Vec<Taken>) -> Result<(Option<SaveTo>, Vec<Taken>), Failure> {
    let save = args.save_maps.as_deref().map(|path| SaveTo::open(path, &taken)).transpose()?;
    taken.extend(save.as_ref().and_then(SaveTo::standard_output));
    let files = [(&args.restore_maps, "--restore-maps"), (&args.save_maps, "--save-maps")];
    let named = files.into_iter().filter_map(|(path, option)| Some((path.as_deref()?, option)));
    taken.extend(
        named.filter_map(|(path, option)| Taken::of_path(path, &format!("{option} {}", path.display()))),
    );
    Ok((save, taken))
}

/// A filter says how many bytes to keep: its results are no XDP actions to be counted and acted on.
pub(crate) fn check_action(name: &str, program: &Program) -> Result<(), Failure> {
    match program.spec().kind.rules().meaning {
        Meaning::Verdict | Meaning::Action(_) => Ok(()),
        Meaning::BytesKept => {
            Err(Failure::Filter { name: name.to_owned(), program: program.spec().name.clone() })
        }
    }
}

/// The subject of a run, and its name.
struct Loaded {
    name: String,
    collection: Collection,
}

fn replay_all(
    args: &RunArgs,
    program: &Program,
    world: &World,
    capture: &mut Capture,
    writers: Writers,
    events: Option<&Events>,
    mut watch: Watch,
) -> (Run, Result<(), ReplayError>) {
    let packet_by_packet = timers_by_packet(args, program.maps());
    let (count, ingress, queue) = (args.count, world.ingress, args.rx_queue);
    let options = ReplayOptions { count, ingress, queue, packet_by_packet, cpus: args.cpus.into() };
    let mut counting = Counting::new(program);
    let mut host = world.host(args);
    if let Some(events) = events {
        events.attach(&mut host);
    }
    let outputs = Outputs { passed: writers.passed, dropped: writers.dropped };
    let start = Instant::now();
    let (tally, ended) = replay(&mut counting, &mut host, &mut capture.reader, outputs, options, |tally| {
        if events.is_some_and(|events| events.drain().is_break()) {
            return ControlFlow::Break(());
        }
        watch.look(tally.packets)
    });
    let (time, interrupted, redirects) = (start.elapsed(), watch.finish(), counting.redirects);
    (Run { tally, time, interrupted, events: None, redirects }, ended)
}

/// Whether packets must run one by one: timers then fire between them when the capture's time says so.
fn timers_by_packet(args: &RunArgs, maps: &[Arc<Map>]) -> bool {
    args.clock == ClockArg::Capture && maps.iter().any(|map| map.has_timers())
}

/// Writes the events that are left, and counts them.
fn finish(events: Option<Events>, run: &mut Run, ended: Result<(), Failure>) -> Result<(), Failure> {
    match events.map(Events::finish).transpose() {
        Ok(count) => {
            run.events = count;
            ended
        }
        Err(error) => ended.and(Err(error)),
    }
}

/// Adds the names of files to what went wrong.
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
            Failure::Capture { name: capture.name.clone(), source: Box::new(source), processed }
        }
        ReplayError::Fault { packet, fault } => {
            let report =
                FaultReport::new(subject.collection.object(), program.spec(), When::In(packet), fault);
            Failure::Fault(Box::new(report.of(&subject.name, &capture.name)))
        }
        ReplayError::Timer { packet, fault } => {
            let report =
                FaultReport::new(subject.collection.object(), program.spec(), When::After(packet), fault);
            Failure::Fault(Box::new(report.of(&subject.name, &capture.name)))
        }
        ReplayError::WritePassed(source) => Failure::Write { name: names.passed(), source },
        ReplayError::WriteDropped(source) => Failure::Write { name: names.dropped(), source },
    }
}
