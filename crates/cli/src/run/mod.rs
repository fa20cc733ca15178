//! `paceline run`.

mod fault;
mod outputs;
mod report;
mod source;
mod watch;

use std::process::ExitCode;
use std::time::Instant;

use paceline::{
    Collection, Host, LoadOptions, NoProgram, Outputs, Program, ReplayError, ReplayOptions, VerifiedProgram,
    replay,
};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::maps;
use crate::verify::Diagnosis;

pub(crate) use fault::{FaultReport, processed};
pub(crate) use outputs::Taken;
use outputs::{OutputNames, Writers};
use report::{Report, Run};
use source::{Capture, Subject};
use watch::Watch;

/// What a shell shows for a command that ended by an interrupt: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// Runs a program over a capture.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let mut subject = Subject::open(args.target.as_deref())?;
    let files = maps::read_files(&args.map_files)?;
    maps::set_variables(&files, &mut subject.object)?;
    let collection = load(&subject, args.budget)?;
    maps::set_elements(&files, &collection)?;
    let program = bind(args, &subject, &collection)?;
    let mut capture = Capture::open(args.input.as_deref())?;
    let inputs = subject.file.iter().chain(&capture.file).cloned();
    let taken = inputs.chain(maps::identities(&args.map_files)).collect();
    let watch = Watch::start(capture.size, capture.position.clone())?;
    let (writers, names) = outputs::create(args, capture.reader.header(), taken)?;
    source::announce(args, &subject, &capture);

    let (run, ended) = replay_all(args, &program, &mut capture, writers, watch);
    let ended =
        ended.map_err(|error| failure(error, &program, &subject, &capture, &names, run.tally.packets));
    if ended.as_ref().is_err_and(Failure::is_closed_pipe) {
        return ended.map(|()| ExitCode::SUCCESS);
    }
    let report = Report {
        run,
        object: &subject.name,
        program: &program.spec().name,
        capture: &capture.name,
        engine: args.engine,
        maps: args.maps.then_some(&collection),
        error: ended.as_ref().err(),
    };
    let printed = report.print(args.json, names.use_stdout());
    ended.and(printed)?;
    Ok(if run.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn load(subject: &Subject, budget: u64) -> Result<Collection, Failure> {
    let options = LoadOptions { budget, ..LoadOptions::default() };
    subject
        .object
        .load(&options)
        .map_err(|source| Failure::Setup { name: subject.name.clone(), source: Box::new(source) })
}

/// The program, verified unless the user does not want that.
fn bind(args: &RunArgs, subject: &Subject, collection: &Collection) -> Result<Program, Failure> {
    let name = subject.program.as_deref();
    let program = match args.unverified {
        true => collection.program_unverified(name),
        false => collection.program(name).map(VerifiedProgram::into_program),
    };
    program.map_err(|source| match source {
        NoProgram::Refused(refused) => {
            Failure::Refused(Box::new(Diagnosis::new(&subject.name, collection.object(), &refused)))
        }
        other => Failure::Program { name: subject.name.clone(), source: Box::new(other) },
    })
}

fn replay_all(
    args: &RunArgs,
    program: &Program,
    capture: &mut Capture,
    writers: Writers,
    mut watch: Watch,
) -> (Run, Result<(), ReplayError>) {
    let options = ReplayOptions { count: args.count };
    let outputs = Outputs { passed: writers.passed, dropped: writers.dropped };
    let start = Instant::now();
    let (tally, ended) =
        replay(program, &mut Host::default(), &mut capture.reader, outputs, options, |tally| {
            watch.look(tally)
        });
    (Run { tally, time: start.elapsed(), interrupted: watch.finish() }, ended)
}

/// Adds the names of files to what went wrong.
fn failure(
    error: ReplayError,
    program: &Program,
    subject: &Subject,
    capture: &Capture,
    names: &OutputNames,
    processed: u64,
) -> Failure {
    match error {
        ReplayError::Read(source) => {
            Failure::Capture { name: capture.name.clone(), source: Box::new(source), processed }
        }
        ReplayError::Fault { packet, fault } => {
            let report = FaultReport::new(&subject.object, program.spec(), packet, fault);
            Failure::Fault(Box::new(report.of(&subject.name, &capture.name)))
        }
        ReplayError::WritePassed(source) => Failure::Write { name: names.passed(), source },
        ReplayError::WriteDropped(source) => Failure::Write { name: names.dropped(), source },
    }
}
