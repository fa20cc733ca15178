//! Ports: sources of bursts of packets and destinations of groups of packets.
//!
//! A [`Port`] fills a burst with the packets that have arrived, without waiting, and sends groups of packets. [`MemoryPort`] and
//! [`Generator`] have their packets in memory; [`Gathered`] makes a port from a [`PacketPort`], which handles single packets only, and
//! [`RateLimited`] limits the rate at which a port receives, and [`Faulty`] makes faults of a network. [`SpreadPort`] divides a port among
//! workers.
#![deny(unsafe_code)]

#[cfg(feature = "device")]
#[allow(unsafe_code, reason = "rings, shared memory and system calls of sockets")]
pub mod device;
mod faulty;
mod flow;
mod gather;
mod generator;
mod memory;
mod port;
mod rate;
mod spread;
mod waiting;

pub use faulty::{Direction, Faults, Faulty};
pub use flow::queue_of;
pub use gather::{Gathered, PacketPort};
pub use generator::Generator;
pub use memory::MemoryPort;
pub use port::{Group, Port, PortError, SendError};
pub use rate::RateLimited;
pub use spread::{Overflow, SpreadPort};
