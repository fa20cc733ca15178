//! Errors of scans.

use paceline::Fault;
use paceline::capture::{LinkType, ReadError};

/// A scan ended early. `name` is that of a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source cannot be opened.
    #[error("{name}")]
    Open {
        /// The source.
        name: String,
        /// Cause.
        source: std::io::Error,
    },
    /// A source is no capture, or cannot be read further.
    #[error("{name}")]
    Read {
        /// The source.
        name: String,
        /// Cause.
        source: Box<ReadError>,
    },
    /// A program is to run on packets that are not Ethernet frames.
    #[error("{name}: programs run on Ethernet, and the link type is {link_type}")]
    LinkType {
        /// The source.
        name: String,
        /// Its link type.
        link_type: LinkType,
    },
    /// A packet caused an invalid access of a program, or a timer did before it.
    #[error("{name}: the packet at byte {offset}")]
    Fault {
        /// The source.
        name: String,
        /// Offset of the packet's record.
        offset: u64,
        /// The invalid access.
        #[source]
        fault: Box<Fault>,
    },
    /// No record ends where a part that is read alone does, or the parts behind it lack descriptions that are in it.
    #[error("{name}: byte {end}, where a part ends, is no boundary, or interfaces are described before it")]
    Boundary {
        /// The source.
        name: String,
        /// End of the part.
        end: u64,
    },
}

impl Error {
    pub(crate) fn read(name: &str, source: ReadError) -> Self {
        Self::Read { name: name.to_owned(), source: Box::new(source) }
    }
}
