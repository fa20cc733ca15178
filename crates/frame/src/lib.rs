//! Packet memory: the 64-byte descriptor of a frame, and bursts of up to 64 of them.
//!
//! A frame's buffer is laid out as a kernel driver lays it out for XDP:
//!
//! ```text
//! hard_start                data_meta   data              data_end       hard_start + buffer_len
//! |  40 bytes kept  |  free  | metadata | packet           |  free  | 320 bytes kept |
//! |<------------ HEADROOM (256) ------->|                           |<-- TAILROOM -->|
//! ```
//!
//! The two kept areas hold `struct xdp_frame` and `struct skb_shared_info` in the kernel; they are kept here so
//! that `bpf_xdp_adjust_head`, `_meta` and `_tail` succeed and fail exactly as there.

mod burst;
mod frame;
mod verdict;

pub use burst::{Burst, FrameMeta, FrameMut, FrameRef, PushError};
pub use frame::{AdjustError, Frame, Redirect, RedirectTarget};
pub use verdict::Verdict;

/// Bytes before the packet when a frame is filled (`XDP_PACKET_HEADROOM`).
pub const HEADROOM: usize = 256;

/// Bytes at the start of the headroom that no packet or metadata may grow into (`sizeof(struct xdp_frame)`).
pub const FRAME_KEPT: usize = 40;

/// Bytes at the end of a buffer that no packet may grow into (`SKB_DATA_ALIGN(sizeof(struct skb_shared_info))`).
pub const TAILROOM: usize = 320;

/// Most frames in a burst.
pub const MAX_BURST: usize = 64;

/// Length of a buffer for ordinary packets: a page, as drivers and `BPF_PROG_TEST_RUN` use.
pub const BUFFER_LEN: usize = 4096;

/// Longest packet that is accepted: libpcap's `MAXIMUM_SNAPLEN`.
pub const MAX_PACKET: usize = 262_144;

/// Shortest packet that `bpf_xdp_adjust_head` and `_tail` leave (`ETH_HLEN`).
pub const MIN_PACKET: usize = 14;
