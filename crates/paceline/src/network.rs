//! The network that programs see: a model of its own, built ([`NetworkBuilder`]), read from the output of `ip -j`, `ss`,
//! `conntrack` and `sysctl` ([`parse`]), or taken from this machine ([`of_host`]).
//!
//! A program asks it through helpers such as `bpf_fib_lookup`, when its [`Host`](crate::Host) has it
//! ([`Host::set_network`](crate::Host::set_network)).

#[cfg(feature = "json")]
pub use paceline_network::iproute::{NetworkError, Problem, SnapshotError, host_text, of_host, parse};
pub use paceline_network::{
    Action, Connection, Connections, ETHERNET_HEADER, Family, Flow, Found, Interface, Kind, LOOPBACK, Mac,
    Network, NetworkBuilder, NextHop, NoRoute, Prefix, Protocol, Route, Rule, Socket, SocketSpec, State,
    Tables, TakenInterface, Tuple, tables,
};

/// Changes of tracked connections.
pub mod connection {
    pub use paceline_network::connection::{ChangeError, TICKS, status};
}
