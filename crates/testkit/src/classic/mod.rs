//! Classic filters: libpcap and the kernel's packet sockets as oracles, random programs, and comparisons.

mod compare;
mod generate;
pub(crate) mod packet_socket;
mod packets;
mod reference;
mod steer;

pub use compare::{Bench, Difference, Tally};
pub use generate::{Sample, sample, shrink};
pub use paceline_classic::libpcap::{Libpcap, Missing, Packets, Target};
pub use packet_socket::{Interface, MIN_PACKET, attach_errno, own_network, seccomp_accepts};
pub use reference::{Reference, run as reference};
pub use steer::{is_defined, steered};
