//! Errors of a run.

use paceline_capture::{ReadError, WriteError};
use paceline_engine::Fault;

/// A run ended early. Counts and outputs until then are valid.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The capture cannot be read further.
    #[error(transparent)]
    Read(ReadError),
    /// A packet caused an invalid access of the program.
    #[error("packet {packet}")]
    Fault {
        /// Number of the packet in the capture, from 1.
        packet: u64,
        /// The invalid access.
        #[source]
        fault: Fault,
    },
    /// A timer callback made an invalid access.
    #[error("timer after packet {packet}")]
    Timer {
        /// Number of the last packet that came before, from 1.
        packet: u64,
        /// The invalid access.
        #[source]
        fault: Fault,
    },
    /// The capture of passed packets cannot be written.
    #[error(transparent)]
    WritePassed(WriteError),
    /// The capture of dropped packets cannot be written.
    #[error(transparent)]
    WriteDropped(WriteError),
}
