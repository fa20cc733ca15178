//! Networks in the output formats of tools: interfaces, routes, rules and neighbors by iproute2 in JSON, sockets by its `ss`,
//! tracked connections by `conntrack -L`, and `net.ipv4.tcp_syncookies` by `sysctl`.
//!
//! [`parse`] parses such text to a [`Network`](crate::Network); [`of_host`] runs the tools of this machine. The text may
//! be hostile.
//!
//! ```
//! use paceline_network::{Flow, Tables};
//!
//! let network = paceline_network::iproute::parse(r#"
//!     [{"ifindex": 2, "ifname": "eth0", "mtu": 1500, "address": "02:00:00:00:00:01", "link_type": "ether"}]
//!     [{"dst": "10.0.0.0/8", "dev": "eth0", "gateway": "192.0.2.1"}]
//!     [{"dst": "192.0.2.1", "dev": "eth0", "lladdr": "02:00:00:00:00:02", "state": ["REACHABLE"]}]
//! "#)?;
//! let flow = Flow::to("10.1.2.3".parse()?);
//! let found = network.route(&flow, Tables::ByRules).expect("there is a route");
//! assert_eq!(network.neighbor(2, found.gateway().unwrap()), Some([2, 0, 0, 0, 0, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conntrack;
mod draft;
mod error;
mod host;
mod interface;
mod json;
mod line;
mod list;
mod neighbor;
mod route;
mod rule;
mod ss;
mod text;

pub use error::{NetworkError, Problem};
pub use host::{SnapshotError, host_text, of_host};
pub use text::parse;
