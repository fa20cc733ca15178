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
mod layout;
mod memory;
mod place_error;
mod pool;
mod verdict;

pub use burst::{Burst, FrameMeta, FrameMut, FrameRef, PushError, Taken};
pub use frame::{AdjustError, DeviceMetadata, Frame, Redirect, RedirectTarget};
pub use layout::{BUFFER_LEN, FRAME_KEPT, HEADROOM, MAX_BURST, MAX_PACKET, MIN_PACKET, TAILROOM};
pub use memory::{ChunkLayout, FrameMemory, HeapMemory};
pub use place_error::PlaceError;
pub use pool::{Chunk, FramePool, PoolCache, Span};
pub use verdict::Verdict;
