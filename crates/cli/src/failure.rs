//! Everything that can fail, and how it is told.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use paceline::capture::{ReadError, WriteError};
use paceline::filter::text::TextError;
use paceline::filter::{CheckError, FilterError, Missing};
use paceline::kernel::KernelFileError;
use paceline::network::{NetworkError, SnapshotError};
use paceline::{
    CreateError, CreateErrorKind, Engine, EntryError, Fault, JitSymbolsError, LoadError, NAMES_VARIABLE,
    NoProgram, Object, OpenError, Refused, SetupError, SkippedProgram, UpdateError, section_tells_type,
};

use crate::chain::ChainFailure;
use crate::console;
use crate::filter::{CallError, ExpressionError, ListProblem};
use crate::maps::MapFailure;
use crate::run::{self, FaultReport};
use crate::verify::{self, Diagnosis};

/// Why a command ends with status 1. File names are as the user gave them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{name}: {source}")]
    Object { name: String, source: Box<OpenError>, is_capture: bool },
    #[error("{name}: {source}")]
    Setup { name: String, source: Box<SetupError> },
    #[error("{name}: {source}")]
    Program { name: String, source: Box<NoProgram> },
    #[error("{option} {name}: {source}")]
    Kernel { option: &'static str, name: String, source: Box<KernelFileError> },
    #[error("{option}: the object has no map `{map}`")]
    NoMap { option: &'static str, map: String, hint: Option<String> },
    #[error("{name}: program {program} is a socket filter, and `run` takes XDP programs")]
    Filter { name: String, program: String },
    #[error("{0}")]
    Refused(Box<Diagnosis>),
    /// The failure as a report on standard output has it.
    #[error("{0}")]
    Told(Box<Self>),
    #[error("{0}")]
    Chain(Box<ChainFailure>),
    #[error("{name}: {source}")]
    OpenCapture { name: String, source: io::Error },
    #[error("{name}: {source}")]
    Capture { name: String, source: Box<ReadError>, processed: u64 },
    #[error("{0}")]
    Libpcap(Missing),
    #[error("{0}")]
    Expression(Box<ExpressionError>),
    #[error("{name}: {source}")]
    ReadText { name: String, source: io::Error },
    #[error("{name}:{}:{}: {}", .source.line, .source.column, .source.problem)]
    FilterText { name: String, source: TextError },
    #[error("{name}: {source}")]
    FilterCheck { name: String, source: CheckError },
    #[error("{name}: {source}")]
    FilterProgram { name: String, source: Box<FilterError> },
    #[error("{name}: {fault}")]
    FilterFault { name: String, fault: Box<Fault> },
    #[error("{name}:{line}:{column}: {problem}")]
    FilterList { name: String, line: usize, column: usize, problem: ListProblem },
    #[error("{name}: there is no filter in it")]
    NoFilters { name: String },
    #[error("{name}:{line}:{column}: {source}")]
    SystemCall { name: String, line: usize, column: usize, source: CallError },
    #[error("{0}")]
    Fault(Box<FaultReport>),
    #[error("{name}: {source}")]
    Map { name: String, source: Box<MapFailure> },
    #[error("{name}: dispatcher: {source}")]
    Dispatcher { name: String, source: UpdateError },
    #[error("{name}: {source}")]
    CreateOutput { name: String, source: io::Error },
    #[error("{name}: {source}")]
    Write { name: String, source: WriteError },
    #[error("{option} {name} is the same file as {other}")]
    SameFile { option: &'static str, name: String, other: String },
    #[error("{option} {name}: packets are not written to a terminal")]
    Terminal { option: &'static str, name: String },
    #[error("{name}: {source}")]
    Events { name: String, source: io::Error },
    #[error("--event-type {map}={name}: {problem}")]
    EventType { map: String, name: String, problem: &'static str, hint: Option<String> },
    #[error("--network {name}: {source}")]
    Network { name: String, source: NetworkFailure },
    #[error("--ingress {name}: there is no such interface{}", if *.has_network { " in the network" } else { "" })]
    Ingress { name: String, has_network: bool, hint: Option<String> },
    #[error("standard output: {0}")]
    Stdout(io::Error),
    #[error(transparent)]
    Names(#[from] JitSymbolsError),
    #[error("names of native code, as {NAMES_VARIABLE} asks for: {0}")]
    AnnounceNames(io::Error),
    #[error("cannot handle interrupts: {0}")]
    Signals(io::Error),
}

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkFailure {
    #[error(transparent)]
    Read(io::Error),
    #[error(transparent)]
    Parse(#[from] NetworkError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl Failure {
    /// Why there is no program of an object, with a diagnosis if it is not safe.
    pub(crate) fn no_program(name: &str, object: &Object, error: NoProgram) -> Self {
        let diagnosis = |refused: &Refused| Diagnosis::new(name, object, refused);
        match &error {
            NoProgram::Refused(refused) => return Self::Refused(Box::new(diagnosis(refused))),
            NoProgram::Entry { map, index, source } => {
                if let EntryError::Program(NoProgram::Refused(refused)) = &**source {
                    return Self::Refused(Box::new(diagnosis(refused).of_entry(map, *index)));
                }
            }
            _ => {}
        }
        Self::Program { name: name.to_owned(), source: Box::new(error) }
    }

    /// The same where a report has it.
    pub(crate) fn told(self) -> Self {
        Self::Told(Box::new(self))
    }

    /// Tells what went wrong, also as JSON on standard output if that is wanted, and gives the exit status.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.is_closed_pipe() {
            return ExitCode::SUCCESS;
        }
        self.tell();
        if json && !matches!(self, Self::Told(_)) {
            // A write error here has no reader either.
            let _ = console::print(|out| writeln!(out, "{}", self.to_json()));
        }
        ExitCode::FAILURE
    }

    fn to_json(&self) -> Json {
        let mut json = json!({ "error": self.to_string(), "hint": self.hint() });
        if let Self::Refused(diagnosis) = self {
            json["refused"] = verify::refused_to_json(diagnosis);
        }
        json
    }

    /// Tells what went wrong, and what would help.
    pub(crate) fn tell(&self) {
        match self {
            Self::Refused(diagnosis) => console::diagnosis(diagnosis),
            Self::Expression(error) => console::drawn(|color| error.render(color)),
            Self::Told(failure) => return failure.tell(),
            _ => console::error(self),
        }
        if let Some(hint) = self.hint() {
            console::hint(hint);
        }
    }

    /// Whether the reader of our output had enough, as `head` does: no failure of ours.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        match self {
            Self::Stdout(error) | Self::Events { source: error, .. } => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            Self::Write { source, .. } => matches!(source, WriteError::BrokenPipe),
            Self::Told(failure) => failure.is_closed_pipe(),
            _ => false,
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Object { name, is_capture: true, .. } => {
                Some(format!("this is a capture; say `paceline run OBJECT --in {name}`"))
            }
            Self::Object { source, .. } => object_hint(source),
            Self::Setup { name, source } => Some(setup_hint(name, source)),
            Self::Program { name, source } => program_hint(name, source),
            Self::Refused(diagnosis) => Some(diagnosis.way_out()),
            Self::Capture { name, source, processed } => capture_hint(name, source, *processed),
            Self::Libpcap(_) => Some(
                "install it (Debian: apt install libpcap0.8), or give a program: --program FILE takes what \
                 `tcpdump -ddd EXPRESSION` prints elsewhere"
                    .to_owned(),
            ),
            Self::Expression(error) => error.hint(),
            Self::FilterText { .. } => Some(
                "a program is what `tcpdump -ddd` or `-dd` prints, or bpf_asm's language; expressions are given \
                 without --program"
                    .to_owned(),
            ),
            Self::NoFilters { .. } => Some("each line of it is `name: expression`".to_owned()),
            Self::Fault(report) => report.hint(),
            Self::Map { source, .. } => source.hint(),
            Self::Chain(failure) => failure.hint(),
            Self::EventType { hint, .. } | Self::Ingress { hint, .. } | Self::NoMap { hint, .. } => hint.clone(),
            Self::SameFile { .. } => Some("nothing was written; give another name".to_owned()),
            Self::Terminal { .. } => Some("send standard output to a file or another command".to_owned()),
            _ => None,
        }
    }
}

fn object_hint(error: &OpenError) -> Option<String> {
    let compile = "objects are made by `clang -O2 -g -target bpf -c program.bpf.c -o program.o`";
    match error {
        OpenError::Parse(LoadError::NotElf | LoadError::NotBpf { .. }) => Some(compile.to_owned()),
        _ => None,
    }
}

/// Whether it is the section's name that says that a program is of another type.
fn tells_type(program: &SkippedProgram) -> bool {
    section_tells_type(&program.section)
}

/// The options with which maps could be created that now cannot, in one line.
fn setup_hints(name: &str, errors: &[Arc<SetupError>]) -> String {
    let zero = |error: &Arc<SetupError>| match &**error {
        SetupError::Map(CreateError { name, cause: CreateErrorKind::ZeroEntries, .. }) => Some(name.clone()),
        _ => None,
    };
    let sized: Option<Vec<String>> = errors.iter().map(zero).collect();
    match (errors, sized) {
        ([], _) => needs(name),
        ([only], _) => setup_hint(name, only),
        (_, Some(maps)) => {
            let options: Vec<_> = maps.iter().map(|map| format!("--map {map}=entries:N")).collect();
            format!("its loader sets how many entries they have; here `{}` does", options.join(" "))
        }
        ([first, ..], None) => setup_hint(name, first),
    }
}

/// The option with which a map could be created that now cannot.
fn setup_hint(name: &str, error: &SetupError) -> String {
    match error {
        SetupError::Map(CreateError { name: map, cause, .. }) => map_hint(map, cause),
        SetupError::Unnamed(error) => Some(setup_hint(name, error)),
        _ => None,
    }
    .unwrap_or_else(|| needs(name))
}

fn map_hint(map: &str, cause: &CreateErrorKind) -> Option<String> {
    match cause {
        CreateErrorKind::Memory { .. } => Some("--map-memory SIZE sets the limit".to_owned()),
        CreateErrorKind::ZeroEntries | CreateErrorKind::RingSize { entries: 0, .. } => {
            Some(format!("its loader sets how many entries it has; here `--map {map}=entries:N` does"))
        }
        CreateErrorKind::NoInner => Some(format!(
            "its loader sets what they look like; here `--map {map}=inner:MAP` does, as map MAP of the object"
        )),
        CreateErrorKind::Inner(cause) => map_hint(&format!("{map}.inner"), cause),
        _ => None,
    }
}

fn needs(name: &str) -> String {
    format!("`paceline inspect {name}` shows all that it needs")
}

fn program_hint(name: &str, error: &NoProgram) -> Option<String> {
    match error {
        NoProgram::Several(names) => Some(format!("say `{name}:{}`", names.first()?)),
        NoProgram::None => Some(format!("`paceline inspect {name}` shows what it has")),
        NoProgram::OtherTypes(skipped) if skipped.iter().all(tells_type) => None,
        NoProgram::OtherTypes(_) => Some(format!(
            "`--type xdp {name}:PROGRAM` takes one of them for an XDP program, `--type socket` for a filter"
        )),
        NoProgram::Skipped(skipped) if tells_type(skipped) => None,
        NoProgram::Skipped(SkippedProgram { name: program, error: None, .. }) => Some(format!(
            "`--type xdp {name}:{program}` takes it for an XDP program, `--type socket` for a socket filter"
        )),
        NoProgram::Skipped(_) => None,
        NoProgram::Maps { sources, .. } => Some(setup_hints(name, sources)),
        NoProgram::Unknown { .. } => no_program_hint(error),
        NoProgram::Malformed { .. } => Some(needs(name)),
        NoProgram::Engine { .. } => Some(format!("`--engine {}` runs everywhere", Engine::Threaded)),
        NoProgram::Refused(_) => None,
        NoProgram::Entry { source, .. } => match &**source {
            EntryError::Program(error) => program_hint(name, error),
            _ => None,
        },
    }
}

fn capture_hint(name: &str, error: &ReadError, processed: u64) -> Option<String> {
    match error {
        ReadError::Compressed(program @ ("gzip" | "zstd" | "xz" | "bzip2" | "lz4")) => {
            Some(format!("say `{program} -dc {name} | paceline ... --in -`"))
        }
        ReadError::Foreign("an ELF object") => {
            Some(format!("objects are not given with --in: `paceline run {name} --in CAPTURE`"))
        }
        ReadError::PacketLinkType { .. } => {
            let done = run::processed(processed).map(|text| format!("; {text}")).unwrap_or_default();
            Some(format!("all packets must be of one link type{done}"))
        }
        _ => run::processed(processed),
    }
}

/// What would help when a program that is named elsewhere than on the command line is not there.
pub(crate) fn no_program_hint(error: &NoProgram) -> Option<String> {
    match error {
        NoProgram::Unknown { name, names } => closest(name, names.iter().map(String::as_str)),
        _ => None,
    }
}

/// The name that was most likely meant.
pub(crate) fn closest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    paceline_suggest::nearest(wanted, names).map(|name| format!("did you mean `{name}`?"))
}
