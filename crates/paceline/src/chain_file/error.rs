//! Errors of chain files that are read and loaded.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::chain_graph::{FileError, FilePlace, RunConfigError};

use crate::contents::{ContentsCause, ContentsError};
use crate::live::ChangeError;
use crate::load::{FilterTextError, Object, OpenError};
use crate::load::{ProgramError, SetupError};
use crate::text_file::TextFileError;

/// A chain file cannot be loaded. The messages begin with the file, and the place where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFileError {
    /// It cannot be read.
    #[error("{}", .file.display())]
    Read {
        /// The chain file.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// It is no text.
    #[error("{}", match .format {
        Some(format) => format!("{}: not a text file but {format}", .file.display()),
        None => format!("{}:{at}: not valid UTF-8", .file.display()),
    })]
    NotText {
        /// The chain file.
        file: PathBuf,
        /// The format that it has instead, with its article, where it is known.
        format: Option<&'static str>,
        /// Where the text ends.
        at: FilePlace,
    },
    /// It is wrong in itself.
    #[error("{}:{error}", .file.display())]
    File {
        /// The chain file.
        file: PathBuf,
        /// Place and cause.
        error: FileError,
    },
    /// Something that it names cannot be had.
    #[error("{}:{at}", .file.display())]
    At {
        /// The chain file.
        file: PathBuf,
        /// Where it is named.
        at: FilePlace,
        /// Cause.
        #[source]
        cause: Box<ChainFileCause>,
    },
    /// Contents of [`ChainLoadOptions::contents`](super::ChainLoadOptions) are wrong; these have a file and a place of their own.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// The programs make no chain.
    #[error("{}{}", .file.display(), .at.map_or_else(String::new, |at| format!(":{at}")))]
    Change {
        /// The chain file.
        file: PathBuf,
        /// The program that it is about, if it is about one.
        at: Option<FilePlace>,
        /// Cause.
        source: ChangeError,
    },
}

/// The reason why something that a chain file names cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainFileCause {
    /// An object file.
    #[error("{}", .path.display())]
    Object {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: Box<OpenError>,
    },
    /// The file of a classic filter cannot be read.
    #[error("{}", .path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: TextFileError,
    },
    /// The file of a classic filter has none.
    #[error("{}", .path.display())]
    Classic {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: FilterTextError,
    },
    /// libpcap, which compiles expressions, is not there.
    #[cfg(feature = "libpcap")]
    #[error(transparent)]
    Libpcap(paceline_classic::libpcap::Missing),
    /// The library was built without libpcap.
    #[cfg(not(feature = "libpcap"))]
    #[error("expressions need libpcap, which this build leaves out")]
    NoLibpcap,
    /// libpcap does not compile an expression.
    #[error("in the expression `{expression}`: {message}")]
    Expression {
        /// The expression.
        expression: String,
        /// libpcap's message.
        message: String,
        /// The bytes of the expression that it is about, where they can be told.
        place: Option<Range<usize>>,
    },
    /// An expression is no program.
    #[error("the expression `{expression}`")]
    Filter {
        /// The expression.
        expression: String,
        /// Cause.
        source: FilterTextError,
    },
    /// Contents of a map, which have a file of their own.
    #[error(transparent)]
    Contents(ContentsError),
    /// Contents of a map, which are in the chain file.
    #[error(transparent)]
    Inline(ContentsCause),
    /// The maps of an object cannot be made.
    #[error("{object}")]
    Setup {
        /// Name of the object in the file.
        object: String,
        /// Cause.
        source: Box<SetupError>,
    },
    /// A program cannot be had.
    #[error("{name}")]
    Program {
        /// Name of the object in the file.
        name: String,
        /// The object's file, if it has one.
        path: Option<PathBuf>,
        /// The object.
        object: Box<Object>,
        /// Cause.
        source: Box<ProgramError>,
    },
    /// An object's `XDP_RUN_CONFIG` is wrong.
    #[error("{object}")]
    Config {
        /// Name of the object in the file.
        object: String,
        /// Cause.
        source: RunConfigError,
    },
    /// A socket filter, which returns a number of bytes and no verdict.
    #[error(
        "{object}: program {program} is a socket filter, and a chain is of XDP programs and TC classifiers"
    )]
    NoVerdicts {
        /// Name of the object in the file.
        object: String,
        /// Name of the program.
        program: String,
    },
}
