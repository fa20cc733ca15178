//! Errors of workers.

use paceline_engine::Fault;
use paceline_ports::PortError;

/// A worker did not finish a burst.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A port does not work any more.
    #[error("interface {ifindex}")]
    Receive {
        /// The interface.
        ifindex: u32,
        /// Cause.
        source: PortError,
    },
    /// A port that packets go to does not work any more.
    #[error("sending packets of interface {ifindex} to port {port}")]
    Send {
        /// Input interface of the packets.
        ifindex: u32,
        /// The port: number of an interface or socket, or 0 for the port of passed packets.
        port: u32,
        /// Cause.
        source: PortError,
    },
    /// A packet made a program do what it may not: that of the interface, or of an entry of a map. The packets before were acted
    /// on; it and those behind it that go the same way are lost.
    #[error("interface {ifindex}, packet {index} of the burst")]
    Fault {
        /// Input interface of the packet.
        ifindex: u32,
        /// Its index in the burst.
        index: usize,
        /// The invalid access.
        #[source]
        fault: Box<Fault>,
    },
    /// A timer callback made an invalid access.
    #[error("timer")]
    Timer {
        /// The invalid access.
        #[source]
        fault: Box<Fault>,
    },
}
