//! Ports: where packets come from and go to, in bursts.
//!
//! A [`Pipeline`](crate::Pipeline) moves packets between them. [`MemoryPort`] and [`Generator`] keep packets in memory; a device of
//! your own implements [`Port`], or [`PacketPort`] where it takes packets one by one. Network devices of Linux are in
//! [`device`](crate::device).
//!
//! Ports that share a [`FramePool`] pass packets on without copying them: the port that receives a packet places its frame in a burst, and
//! the port that sends it takes the frame out. [`FrameMemory`] is the memory of a pool.

#[cfg(feature = "captures")]
mod capture;

#[cfg(feature = "captures")]
pub use capture::{CapturePort, CaptureQueue};
pub use paceline_frame::{Chunk, ChunkLayout, FrameMemory, FramePool, HeapMemory, PoolCache, Span, Taken};
pub use paceline_ports::{
    Direction, Faults, Faulty, Gathered, Generator, Group, MemoryPort, Overflow, PacketPort, Port, PortError,
    RateLimited, SendError, SpreadPort,
};
