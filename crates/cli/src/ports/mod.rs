//! Ports by their names on the command line: `KIND:ARGUMENT`.

mod awaited;
mod error;
mod generate;
mod open;
mod spec;

pub(crate) use awaited::Waiting;
pub(crate) use open::{OpenedPort, Opening, QueuePort};
pub(crate) use spec::{PortSpec, range};
