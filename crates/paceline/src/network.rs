//! The network that programs see: a model of its own, read from the output of `ip -j`, `ss`, `conntrack` and `sysctl`, or
//! taken from this machine.

pub use paceline_iproute::{NetworkError, Problem, SnapshotError, host_text, of_host, parse};
pub use paceline_network::*;
