//! Ports by their names on the command line: `KIND:ARGUMENT`.

mod error;
mod generate;
mod open;
mod spec;

pub(crate) use open::{OpenedPort, Opening, QueuePort};
pub(crate) use spec::{PortSpec, range};
