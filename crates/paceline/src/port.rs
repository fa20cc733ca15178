//! Ports: where packets come from and go to, in bursts.
//!
//! A [`Pipeline`](crate::Pipeline) moves packets between them. [`MemoryPort`] and [`Generator`] keep packets in memory; a device of
//! your own implements [`Port`], or [`PacketPort`] where it takes packets one by one.

pub use paceline_port::{Gathered, Generator, Group, MemoryPort, PacketPort, Port, PortError};
