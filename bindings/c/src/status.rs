//! How a call ended: a status, and what an error handle tells of it.

use paceline::verifier::Refusal;
use paceline::{Errno, ProgramSpec};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum paceline_status {
    /// It did what it says.
    Ok = 0,
    /// There is no such element, or nothing is left. An answer, not an error: no error handle is made.
    NotFound = 1,
    /// An argument is wrong: a null pointer, a number that means nothing, text that is no UTF-8, a structure without its size.
    Argument = 2,
    /// A handle is null, was freed, or is of another kind.
    Handle = 3,
    /// The handle is in use: by another thread, or by the call whose callback this is.
    Busy = 4,
    /// A file cannot be read.
    Io = 5,
    /// The bytes are no object.
    Object = 6,
    /// There is no such program, or none was named and there are several.
    NoProgram = 7,
    /// The verifier refuses the program; the error names instruction, source line and cause.
    Refused = 8,
    /// Valid and not supported here: a helper, a kind of map, an engine.
    Unsupported = 9,
    /// A map cannot be made, or refuses an element. `error_number` of the error's details is that of bpf(2).
    Map = 10,
    /// A program made an invalid access at run time, which those that were verified never do.
    Fault = 11,
    /// There is no room: in a burst, in a frame, in the caller's buffer.
    NoRoom = 12,
    /// A change of a chain is refused.
    Chain = 13,
    /// A filter's expression, text or instructions are wrong, or libpcap cannot be loaded.
    Filter = 14,
    /// The text is no network.
    Network = 15,
    /// A bug of the library: it ended by a panic, which went to standard error too. The handles of the call that can change are
    /// of no use any more, and can be freed.
    Panic = 16,
}

/// A call that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An answer, of which no handle is made.
    Quiet(paceline_status),
    /// An error, with what is known of it.
    Told(Box<Report>),
}

/// Content of an error handle.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) status: Option<paceline_status>,
    pub(crate) message: String,
    /// Error number of bpf(2); 0 without.
    pub(crate) error_number: i32,
    pub(crate) program: Option<String>,
    pub(crate) map: Option<String>,
    pub(crate) file: Option<String>,
    /// Line and column from 1; 0 where unknown.
    pub(crate) place: (u32, u32),
    pub(crate) source: Option<String>,
    pub(crate) hint: Option<String>,
    /// Slot of the guilty instruction.
    pub(crate) slot: Option<u64>,
    /// Index among several packets or elements.
    pub(crate) index: Option<u64>,
}

impl Failure {
    pub(crate) const NOT_FOUND: Self = Self::Quiet(paceline_status::NotFound);

    pub(crate) fn new(status: paceline_status, message: impl ToString) -> Self {
        Self::told(Report { status: Some(status), message: message.to_string(), ..Report::default() })
    }

    /// An error with its causes.
    pub(crate) fn of(status: paceline_status, error: &dyn std::error::Error) -> Self {
        Self::new(status, paceline::with_causes(error))
    }

    pub(crate) fn told(report: Report) -> Self {
        Self::Told(Box::new(report))
    }

    pub(crate) fn argument(message: impl ToString) -> Self {
        Self::new(paceline_status::Argument, message)
    }

    pub(crate) fn status(&self) -> paceline_status {
        match self {
            Self::Quiet(status) => *status,
            Self::Told(report) => report.status.unwrap_or(paceline_status::Panic),
        }
    }

    /// Result of a map's operation: a missing element is no error.
    pub(crate) fn of_map(map: &str, errno: Errno) -> Self {
        if errno == Errno::ENOENT {
            return Self::NOT_FOUND;
        }
        Self::told(Report {
            status: Some(paceline_status::Map),
            message: format!("map {map}: {errno}"),
            error_number: errno.0.into(),
            map: Some(map.to_owned()),
            ..Report::default()
        })
    }

    /// The same failure, with which of several packets or elements it was.
    pub(crate) fn at(mut self, index: usize) -> Self {
        if let Self::Told(report) = &mut self {
            report.index = Some(index as u64);
        }
        self
    }
}

impl Report {
    /// Names the instruction of a program, with its source line.
    pub(crate) fn locate(&mut self, program: &ProgramSpec, slot: usize) {
        self.program = Some(program.name.clone());
        self.slot = Some(slot as u64);
        if let Some(line) = program.line_of(slot) {
            self.file = Some(line.file.to_string());
            self.place = (line.line, line.column);
            self.source = Some(line.text.to_string());
        }
    }

    /// The refusal of a program.
    pub(crate) fn of_refusal(message: String, program: &ProgramSpec, refusal: &Refusal) -> Self {
        let hint = refusal.hint.map(|hint| hint.to_string());
        let mut report = Self { status: Some(paceline_status::Refused), message, hint, ..Self::default() };
        report.locate(program, refusal.slot);
        report
    }
}
