//! Filters over a capture.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use paceline::capture::{CaptureReader, Link};
use paceline::filter::{Matched, Select, SelectError, Selection, select, target_of};
use paceline::{Engine, Host};

use super::args::{FilterArgs, NAME};
use super::error::FilterError;
use super::printer::Printer;
use super::report::{Report, Run};
use super::wanted::{self, Loaded};
use super::{listing, optimizer, socket, syscalls};
use crate::common::capture::{Capture, CaptureError};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{FileError, Opened, Taken, is_stdout, name};
use crate::common::report::{Report as _, StdoutError};
use crate::common::watch::{INTERRUPTED, Watch};
use crate::object::is_object;

/// Selects the packets of a capture, or prints a program.
pub(crate) fn filter(args: &FilterArgs) -> Result<ExitCode, Failure> {
    args.check().unwrap_or_else(|usage| usage.exit());
    if let (Some(program), Some(calls)) = (&args.program, &args.syscalls) {
        return syscalls::run(program, calls, args.json);
    }
    let object = args.program.as_deref().filter(|program| is_object(program.as_os_str()));
    match (object, args.object.given()) {
        (Some(object), _) if args.prints() => {
            return Err(FilterError::NotClassic { name: object.display().to_string() }.into());
        }
        (None, Some(option)) => return Err(FilterError::ForObjects(option).into()),
        _ => {}
    }
    if args.prints() {
        let link = match &args.input {
            Some(path) => Capture::open(Some(path), CaptureReader::for_filters)?.reader.link(),
            None => Link::default(),
        };
        let plain = wanted::compile_one(args, target_of(link))?;
        let printed = if args.no_optimize { plain } else { optimizer::optimized(plain, target_of(link))? };
        return listing::print(args, &printed);
    }
    let engine = args.engine.unwrap_or(Engine::best());
    if let Some(object) = object {
        let (filter, file) = socket::load(args, object.as_os_str(), engine)?;
        let mut capture = Capture::open(args.input.as_deref(), CaptureReader::for_filters)?;
        return run(args, engine, &mut capture, &[filter], file.into_iter().collect());
    }
    let wanted = wanted::read(args)?;
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::for_filters)?;
    let filters = wanted::compile(wanted, target_of(capture.reader.link()))?;
    let filters = filters.into_iter().map(|filter| filter.load(engine)).collect::<Result<Vec<_>, _>>()?;
    run(args, engine, &mut capture, &filters, Vec::new())
}

fn run(
    args: &FilterArgs,
    engine: Engine,
    capture: &mut Capture,
    filters: &[Loaded],
    taken: Vec<Taken>,
) -> Result<ExitCode, Failure> {
    let names: Vec<Option<PathBuf>> = filters.iter().map(|filter| output_name(args, filter)).collect();
    let watch = Watch::start(capture.size, capture.position.clone())?;
    let mut outputs = open(args, capture, &names, taken)?.into_iter();
    let mut selections = Vec::new();
    for loaded in filters {
        let output = outputs.next().flatten().map(|output| output.start(capture.reader.header()));
        selections.push(Selection::new(loaded.filter.clone(), output.transpose()?));
    }
    let printer = args.print.then(|| Printer::new(capture.reader.link().link_type)).transpose();
    let printer = printer.map_err(StdoutError)?;
    for (selection, printer) in selections.iter_mut().zip(printer.iter().cycle()) {
        let printer = Rc::clone(printer);
        selection.tell = Some(Box::new(move |number, frame| printer.add(number, frame)));
    }
    announce(args, capture);

    let (run, ended) = select_all(args, capture, &mut selections, watch);
    let ended = ended.map_err(|error| failure(error, capture, filters, &names, run.read));
    let printed =
        printer.map_or(Ok(()), |printer| printer.finish().map_err(|error| StdoutError(error).into()));
    let ended = ended.and(printed);
    if ended.as_ref().is_err_and(Failure::is_closed_pipe) {
        return ended.map(|()| ExitCode::SUCCESS);
    }
    let report = Report {
        run,
        capture: &capture.name,
        engine,
        filters: filters.iter().zip(selections.iter().map(|selection| selection.matched)).collect(),
        error: ended.as_ref().err(),
    };
    let aside = args.print || names.iter().flatten().any(|path| is_stdout(path));
    let printed = report.print(args.json, aside);
    ended.and(printed)?;
    if !run.interrupted {
        for (loaded, selection) in filters.iter().zip(&selections) {
            optimizer::tell_of_nothing(loaded, selection.matched, capture.reader.link())?;
        }
    }
    Ok(if run.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The name of a filter's output.
fn output_name(args: &FilterArgs, filter: &Loaded) -> Option<PathBuf> {
    let out = args.out.as_ref()?;
    match (&filter.name, out.to_str()) {
        (Some(name), Some(out)) => Some(OsString::from(out.replace(NAME, name)).into()),
        _ => Some(out.clone()),
    }
}

/// Opens the outputs, and changes none before all are open.
fn open(
    args: &FilterArgs,
    capture: &Capture,
    names: &[Option<PathBuf>],
    object: Vec<Taken>,
) -> Result<Vec<Option<Opened>>, FileError> {
    let read = [
        (&args.expression_file, "the expression"),
        (&args.program, "the program"),
        (&args.filters, "the filters"),
    ];
    let stdout = args.print.then(|| PathBuf::from("-"));
    let read = read.into_iter().filter_map(|(path, what)| {
        let path = path.as_deref()?;
        Taken::of_path(path, &format!("{what} {}", path.display()))
    });
    let mut taken: Vec<Taken> = read.chain(capture.file.clone()).chain(object).collect();
    // No packets go where lines go.
    stdout.as_deref().map(|path| Opened::open_text(path, "--print", &mut taken)).transpose()?;
    let open = |name: &Option<PathBuf>| {
        name.as_deref().map(|path| Opened::open(path, "--out", &mut taken)).transpose()
    };
    names.iter().map(open).collect()
}

fn announce(args: &FilterArgs, capture: &Capture) {
    if args.input.is_none() {
        console::note(format_args!(
            "filtering the {} (examples/traffic.pcap); for your own: --in CAPTURE",
            capture.name
        ));
    }
}

fn select_all(
    args: &FilterArgs,
    capture: &mut Capture,
    selections: &mut [Selection<'_>],
    mut watch: Watch,
) -> (Run, Result<(), SelectError>) {
    let options = Select { count: args.count };
    let start = Instant::now();
    let (read, ended) = select(&mut capture.reader, selections, &mut Host::default(), options, |read| {
        watch.look(read.packets)
    });
    (Run { read, time: start.elapsed(), interrupted: watch.finish() }, ended)
}

/// Adds file names to an error.
fn failure(
    error: SelectError,
    capture: &Capture,
    filters: &[Loaded],
    names: &[Option<PathBuf>],
    read: Matched,
) -> Failure {
    let output = |index: usize| names.get(index).and_then(Option::as_deref).map(name).unwrap_or_default();
    match error {
        SelectError::Read(source) => {
            let (name, source) = (capture.name.clone(), Box::new(source));
            CaptureError::Read { name, source, processed: read.packets }.into()
        }
        SelectError::Fault { selection, fault } => FilterError::Fault {
            name: filters.get(selection).map(|filter| filter.title.clone()).unwrap_or_default(),
            fault: Box::new(fault),
        }
        .into(),
        SelectError::Write { selection, source } => {
            FileError::Write { name: output(selection), source }.into()
        }
    }
}
