//! Errors of chains, on the command line and in files.

use paceline::chain::{ChainFileCause, ChainFileError, FilePlace, RunConfigError};
use paceline::filter::Missing;
use paceline::text_file::TextFileError;
use paceline::{ChangeError, Fault, FilterTextError, ProgramError};

use crate::common::failure::{CommandError, Failure};
use crate::common::packets::When;
use crate::expression::{ExpressionError, Passage, brief};
use crate::object::{NamedProgramError, NotXdp, ObjectError};

/// The reason why there is no chain, or why it stopped. Names of files are as the user gave them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChainError {
    #[error("{name}")]
    Read { name: String, source: TextFileError },
    /// A chain file that cannot be read, is wrong, or describes no chain.
    #[error(transparent)]
    Load(ChainFileError),
    #[error(transparent)]
    Cause(ChainFileCause),
    /// Something that a chain file names cannot be had.
    #[error("{name}:{at}")]
    At { name: String, at: FilePlace, source: Failure },
    /// A chain file names an object with several programs, and none of them.
    #[error("{object}: several programs in the object, name one of: {}", .names.join(", "))]
    SeveralPrograms { object: String, names: Vec<String> },
    #[error("{0}")]
    Libpcap(Missing),
    #[error("{name}")]
    Filter { name: String, source: FilterTextError },
    #[error("{name}")]
    Config { name: String, source: RunConfigError },
    #[error("{name}")]
    Change { name: String, source: ChangeError },
    #[error("{name}: {problem}")]
    Calls { name: String, problem: CallsProblem },
    #[error("--place {place}: {problem}")]
    Place { place: String, problem: PlaceProblem },
    #[error("--place is for programs in the given order, not by priority")]
    PlacesByPriority,
    #[error("several objects have a map {0}: its contents are given in a chain file")]
    SeveralMaps(String),
    #[error("no object of the chain has a map {map}")]
    NoMap { map: String, hint: Option<String> },
    #[error("{chain}: {when} of {capture}: {fault}")]
    Fault { chain: String, when: When, capture: String, fault: Box<Fault> },
    #[error("{0}: a chain file cannot be combined with objects: it names its own")]
    FileAmongObjects(String),
    #[error("{0} is an option for objects: a chain file contains this setting")]
    NotWithFile(&'static str),
}

/// An error in a chain-call map.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallsProblem {
    #[error("{0}")]
    Syntax(serde_json::Error),
    #[error("a chain-call map is a list of {{\"key\": PROGRAM, \"value\": {{VERDICT: PROGRAM, ...}}}}")]
    Shape,
    #[error("no program `{name}` (available: {})", .names.join(", "))]
    NoProgram { name: String, names: Vec<String> },
    #[error("no verdict `{0}`; there are wildcard, aborted, drop, pass, tx and redirect")]
    NoVerdict(String),
    #[error("program {0} has two entries")]
    Twice(String),
}

/// The reason why `--place` cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceProblem {
    #[error("no program `{name}` (available: {})", .names.join(", "))]
    NoProgram { name: String, names: Vec<String> },
    #[error("a program cannot be placed relative to itself or to a replaced program")]
    NotThere,
}

impl CommandError for ChainError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoMap { hint, .. } => hint.clone(),
            Self::At { source, .. } => source.hint(),
            Self::SeveralPrograms { names, .. } => Some(format!("say `function = \"{}\"`", names.first()?)),
            Self::Libpcap(_) => Some(
                "install it (Debian: apt install libpcap0.8), or give `classic` instead of `filter`: a file with what \
                 `tcpdump -ddd EXPRESSION` prints elsewhere"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The error of a chain file as the command tells it: what the file names has hints of its own.
pub(super) fn of_file(error: ChainFileError) -> Failure {
    let (name, at, cause) = match error {
        ChainFileError::At { file, at, cause } => (file.display().to_string(), at, cause),
        ChainFileError::Contents(error) => return error.into(),
        error => return ChainError::Load(error).into(),
    };
    match of_cause(*cause) {
        // Its diagnosis has the place in the source.
        Cause::Refused(refused) => refused.into(),
        Cause::Other(source) => ChainError::At { name, at, source }.into(),
    }
}

/// The reason why something that a chain file names cannot be had.
enum Cause {
    Refused(NamedProgramError),
    Other(Failure),
}

fn of_cause(cause: ChainFileCause) -> Cause {
    Cause::Other(match cause {
        ChainFileCause::Program { name, object, source, .. } => match *source {
            ProgramError::Several(names) => ChainError::SeveralPrograms { object: name, names }.into(),
            source => match NamedProgramError::new(&name, &object, source) {
                refused @ NamedProgramError::Refused(_) => return Cause::Refused(refused),
                error => error.into(),
            },
        },
        ChainFileCause::Setup { object, source } => ObjectError::setup(&object, *source).into(),
        ChainFileCause::Contents(error) => error.into(),
        ChainFileCause::Inline(cause) => cause.into(),
        ChainFileCause::NoVerdicts { object, program } => NotXdp::new(&object, &program).into(),
        ChainFileCause::Libpcap(missing) => ChainError::Libpcap(missing).into(),
        ChainFileCause::Expression { expression, message, place } => {
            ExpressionError::new(&message, Passage::of_text(expression), place).into()
        }
        ChainFileCause::Filter { expression, source } => {
            ChainError::Filter { name: format!("the expression `{}`", brief(&expression)), source }.into()
        }
        cause => ChainError::Cause(cause).into(),
    })
}
