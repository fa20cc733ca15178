//! Packet memory: the 64-byte descriptor of a frame, and bursts of up to 64 of them.
//!
//! The layout of a frame's buffer is that of kernel drivers for XDP:
//!
//! ```text
//! hard_start                data_meta   data              data_end       hard_start + buffer_len
//! |  40 bytes kept  |  free  | metadata | packet           |  free  | 320 bytes kept |
//! |<------------ HEADROOM (256) ------->|                           |<-- TAILROOM -->|
//! ```
//!
//! The two areas that are kept free hold `struct xdp_frame` and `struct skb_shared_info` in the kernel; they are kept here so that
//! `bpf_xdp_adjust_head`, `_meta` and `_tail` succeed and fail under the same conditions.

mod burst;
mod frame;
#[cfg(feature = "guard")]
pub mod guard;
mod memory;
mod pool;
mod verdict;

pub use burst::{Burst, FrameMeta, FrameMut, FrameRef, PushError, Taken};
pub use frame::{AdjustError, DeviceMetadata, Frame, Redirect, RedirectTarget};
pub use memory::{ChunkLayout, FrameMemory, HeapMemory};
pub use pool::{Chunk, FramePool, PoolCache, Span};
pub use verdict::Verdict;

/// Size of the headroom in bytes when a frame is filled (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: usize = 256;

/// Size in bytes of the reserved area at the start of the headroom (`sizeof(struct xdp_frame)`).
pub const FRAME_KEPT: usize = 40;

/// Size in bytes of the reserved area at the end of a buffer (`SKB_DATA_ALIGN(sizeof(struct skb_shared_info))`).
pub const TAILROOM: usize = 320;

/// Maximum number of frames in a burst.
pub const MAX_BURST: usize = 64;

/// Size of a buffer for ordinary packets in bytes: a page, as in drivers and `BPF_PROG_TEST_RUN`.
pub const BUFFER_LEN: usize = 4096;

/// Maximum size of a packet in bytes: libpcap's `MAXIMUM_SNAPLEN`.
pub const MAX_PACKET: usize = 262_144;

/// Minimum size of a packet in bytes after `bpf_xdp_adjust_head` and `_tail` (`ETH_HLEN`).
pub const MIN_PACKET: usize = 14;
