//! Sizes of buffers, their kept areas, packets and bursts.

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
