//! A model of the kernel's network for programs: interfaces, routes, rules and neighbors, sockets and tracked connections.
//!
//! ```
//! use paceline_network::{Flow, Kind, NetworkBuilder, NextHop, Route, Tables, tables};
//!
//! let mut network = NetworkBuilder::default();
//! let hop = NextHop { interface: 1, gateway: Some("192.0.2.1".parse()?), ..NextHop::default() };
//! network.route(tables::MAIN, Route::new("10.0.0.0/8".parse().unwrap(), Kind::Unicast, vec![hop]));
//! let network = network.build();
//! let found = network.route(&Flow::to("10.1.2.3".parse()?), Tables::ByRules).expect("there is a route");
//! assert_eq!(found.gateway(), Some("192.0.2.1".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Look-ups follow Linux 6.18 (`net/ipv4/fib_trie.c`, `net/ipv6/route.c`, `net/core/fib_rules.c`), except for the selection among
//! several next hops, which depends on a secret in the kernel, and here on addresses and weights only. Rules for VRFs, users and
//! tunnels are not supported.
#![forbid(unsafe_code)]

mod address;
mod builder;
pub mod connection;
mod flow;
mod interface;
#[cfg(feature = "iproute")]
pub mod iproute;
mod network;
mod prefix;
mod record;
mod route;
mod rule;
mod socket;

pub use address::{Family, Mac};
pub use builder::{NetworkBuilder, TakenInterface};
pub use connection::{Connection, Connections};
pub use flow::{Flow, NoRoute, Tables, tables};
pub use interface::{ETHERNET_HEADER, Interface, LOOPBACK};
pub use network::Network;
pub use prefix::Prefix;
pub use route::{Found, Kind, NextHop, Route};
pub use rule::{Action, Rule};
pub use socket::{Protocol, Socket, SocketSpec, State, Tuple};
