//! The frame descriptor: one cache line with the state of one packet.

use std::mem::offset_of;

use super::verdict::Verdict;
use crate::layout::{FRAME_KEPT, HEADROOM, MIN_PACKET, TAILROOM};
use crate::pool::Span;

/// Descriptor of one packet: location of its bytes, origin, verdict.
///
/// All state that programs and engines keep per packet is here, except for context fields in the host's area for the current
/// packet, so that a whole burst can go through a program before any verdict is applied. 64 bytes, aligned to 64; generated code
/// uses the `OFFSET_` constants.
///
/// Invariant: `hard_start <= data_meta <= data <= data_end <= hard_start + buffer_len - TAILROOM`, and all `buffer_len` bytes at
/// `hard_start` are initialized memory that the frame owns exclusively. `exposed` is the offset of the first byte of the headroom that
/// was part of the packet or its metadata since the frame was filled: bytes before it may be those of earlier packets, and are zeroed
/// when a program moves the start there. Its highest bit says that the reserved area at `hard_start` holds [`DeviceMetadata`].
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    data: *mut u8,
    data_end: *mut u8,
    data_meta: *mut u8,
    hard_start: *mut u8,
    buffer_len: u32,
    verdict: u32,
    ingress_ifindex: u32,
    rx_queue: u16,
    exposed: u16,
    redirect_via: u32,
    redirect_key: u32,
    redirect_flags: u32,
    egress_ifindex: u32,
}

const _: () = assert!(size_of::<Frame>() == 64 && align_of::<Frame>() == 64);

/// Bit of `exposed`: offsets are less.
const DESCRIBED: u16 = 1 << 15;

/// Maximum offset of a packet that is put into a frame.
pub(crate) const MAX_OFFSET: u32 = DESCRIBED as u32 - 1;

/// Metadata of a device about a received packet (`struct xdp_metadata_ops` of `net/xdp.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceMetadata {
    /// Time of reception by the device's clock, in nanoseconds.
    pub timestamp_ns: u64,
    /// Hash of the packet's flow.
    pub hash: u32,
    /// Fields that the hash is made of (`enum xdp_rss_hash_type`).
    pub hash_type: u32,
    /// EtherType of a VLAN tag that the device removed, in network byte order.
    pub vlan_protocol: [u8; 2],
    /// The tag: priority and VLAN.
    pub vlan_tag: u16,
    /// Error numbers of the time, the hash and the tag; 0 if the device tells it.
    pub timestamp_error: u16,
    /// As `timestamp_error`.
    pub hash_error: u16,
    /// As `timestamp_error`.
    pub vlan_error: u16,
}

const _: () = assert!(size_of::<DeviceMetadata>() <= FRAME_KEPT);

/// `redirect_via` of a frame without target; generated code relies on the value.
const VIA_NOTHING: u32 = 0;
/// `redirect_via` of a frame whose target is an interface; other values are map ids.
const VIA_INTERFACE: u32 = u32::MAX;

/// Target of a redirected packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedirectTarget {
    /// An interface (`bpf_redirect`).
    Interface {
        /// Index of the interface.
        ifindex: u32,
    },
    /// An element of a device, CPU or socket map (`bpf_redirect_map`).
    Map {
        /// Id of the map, neither 0 nor `u32::MAX`.
        map: u32,
        /// Key of the element.
        key: u32,
    },
}

/// A redirect that a helper stored in the frame; it takes effect only if the verdict is [`Verdict::Redirect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// Target.
    pub target: RedirectTarget,
    /// The program's flags.
    pub flags: u32,
}

impl Redirect {
    /// A flag: the packet goes out with the link-layer header of a neighbor (`bpf_redirect_neigh`), which it does not have yet.
    pub const NEIGHBOR: u32 = 1 << 1;
}

/// Reasons why a packet cannot be moved or resized; helpers return `-EINVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdjustError {
    /// The packet would exceed the buffer, or its metadata the headroom.
    #[error("no room in the frame's buffer")]
    NoRoom,
    /// The packet would be shorter than 14 bytes.
    #[error("packet would be shorter than an Ethernet header")]
    TooShort,
    /// The metadata would be longer than 255 bytes or not a multiple of four.
    #[error("metadata length is not a multiple of 4 up to 252")]
    BadMetadata,
}

impl Frame {
    /// Offset of the pointer to the packet's first byte.
    pub const OFFSET_DATA: usize = offset_of!(Self, data);
    /// Offset of the pointer past the packet's last byte.
    pub const OFFSET_DATA_END: usize = offset_of!(Self, data_end);
    /// Offset of the pointer to the metadata's first byte.
    pub const OFFSET_DATA_META: usize = offset_of!(Self, data_meta);
    /// Offset of the 32-bit verdict.
    pub const OFFSET_VERDICT: usize = offset_of!(Self, verdict);
    /// Offset of the 32-bit index of the input interface.
    pub const OFFSET_INGRESS_IFINDEX: usize = offset_of!(Self, ingress_ifindex);
    /// Offset of the 16-bit receive queue.
    pub const OFFSET_RX_QUEUE: usize = offset_of!(Self, rx_queue);
    /// Offset of a 32-bit field that is 0 if the frame has no redirect target.
    pub const OFFSET_REDIRECT: usize = offset_of!(Self, redirect_via);
    /// Offset of the 32-bit index of the output interface.
    pub const OFFSET_EGRESS_IFINDEX: usize = offset_of!(Self, egress_ifindex);

    /// A frame with a buffer, and an empty packet after the headroom.
    ///
    /// # Safety
    /// `hard_start` must point to `buffer_len` initialized bytes that nothing else uses while the frame lives.
    ///
    /// # Panics
    /// If the buffer is smaller than headroom and tailroom together.
    #[must_use]
    pub unsafe fn new(hard_start: *mut u8, buffer_len: u32) -> Self {
        assert!(buffer_len as usize >= HEADROOM + TAILROOM, "buffer smaller than its reserved areas");
        // SAFETY: the buffer is longer than HEADROOM.
        let data = unsafe { hard_start.add(HEADROOM) };
        Self {
            data,
            data_end: data,
            data_meta: data,
            hard_start,
            buffer_len,
            verdict: Verdict::Aborted as u32,
            ingress_ifindex: 0,
            rx_queue: 0,
            exposed: HEADROOM as u16,
            redirect_via: VIA_NOTHING,
            redirect_key: 0,
            redirect_flags: 0,
            egress_ifindex: 0,
        }
    }

    /// Whether a buffer can hold a packet at a span: the reserved areas are kept, and metadata is a multiple of 4 up to 252.
    #[inline]
    pub(crate) fn fits(buffer_len: u32, span: Span) -> bool {
        let end = u64::from(span.offset) + u64::from(span.len);
        u64::from(span.offset) >= FRAME_KEPT as u64 + u64::from(span.metadata)
            && span.offset <= MAX_OFFSET
            && end + TAILROOM as u64 <= u64::from(buffer_len)
            && span.metadata <= 252
            && span.metadata.is_multiple_of(4)
    }

    /// Gives the frame another buffer, which holds a packet at a span that fits, and resets all state of the previous one. Fields are
    /// stored one by one: a whole frame that is copied right after its parts were stored is not forwarded from the store buffer.
    ///
    /// # Safety
    /// As [`new`](Self::new), and [`fits`](Self::fits).
    #[inline]
    pub(crate) unsafe fn set_buffer(&mut self, hard_start: *mut u8, buffer_len: u32, span: Span) {
        // SAFETY: the buffer and the span are guaranteed by the caller.
        unsafe { self.replace_buffer(hard_start, buffer_len, span) };
        self.reset();
    }

    /// As [`set_buffer`](Self::set_buffer), and keeps verdict and origin.
    ///
    /// # Safety
    /// As [`set_buffer`](Self::set_buffer).
    #[inline]
    pub(crate) unsafe fn replace_buffer(&mut self, hard_start: *mut u8, buffer_len: u32, span: Span) {
        // SAFETY: the buffer is guaranteed by the caller, and the span is inside of it.
        unsafe {
            self.data = hard_start.add(span.offset as usize);
            self.data_end = self.data.add(span.len as usize);
            self.data_meta = self.data.sub(span.metadata as usize);
        }
        self.hard_start = hard_start;
        self.buffer_len = buffer_len;
        self.exposed = (span.offset - span.metadata) as u16;
    }

    #[inline]
    fn reset(&mut self) {
        self.verdict = Verdict::Aborted as u32;
        self.ingress_ifindex = 0;
        self.rx_queue = 0;
        self.redirect_via = VIA_NOTHING;
        self.egress_ifindex = 0;
    }

    /// Position of the packet in its buffer.
    #[must_use]
    #[inline]
    pub fn span(&self) -> Span {
        Span {
            offset: self.offset_of_data() as u32,
            len: self.len() as u32,
            metadata: self.metadata_len() as u32,
        }
    }

    /// Maximum size of a packet to fill the frame with, in bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.buffer_len as usize - HEADROOM - TAILROOM
    }

    /// Copies a packet into the frame and resets all state of the previous one.
    ///
    /// # Errors
    /// [`AdjustError::NoRoom`] if it is longer than [`capacity`](Self::capacity); the frame is unchanged.
    #[inline]
    pub fn fill(&mut self, packet: &[u8]) -> Result<(), AdjustError> {
        if packet.len() > self.capacity() {
            return Err(AdjustError::NoRoom);
        }
        // SAFETY: headroom plus a packet of at most `capacity` bytes ends inside of the buffer, and `packet` cannot overlap a
        // buffer that the frame owns exclusively.
        unsafe {
            self.data = self.hard_start.add(HEADROOM);
            self.data.copy_from_nonoverlapping(packet.as_ptr(), packet.len());
            self.data_end = self.data.add(packet.len());
        }
        self.data_meta = self.data;
        self.exposed = HEADROOM as u16;
        self.reset();
        Ok(())
    }

    /// As [`fill`](Self::fill), with metadata, and the packet at a span of the buffer.
    ///
    /// # Errors
    /// [`AdjustError::NoRoom`] if the span does not fit, or has other lengths; the frame is unchanged.
    pub(crate) fn fill_at(&mut self, span: Span, metadata: &[u8], packet: &[u8]) -> Result<(), AdjustError> {
        let lengths = (metadata.len(), packet.len());
        if lengths != (span.metadata as usize, span.len as usize) || !Self::fits(self.buffer_len, span) {
            return Err(AdjustError::NoRoom);
        }
        // SAFETY: the span fits into the frame's own buffer, which neither slice can overlap.
        unsafe {
            self.set_buffer(self.hard_start, self.buffer_len, span);
            self.data_meta.copy_from_nonoverlapping(metadata.as_ptr(), metadata.len());
            self.data.copy_from_nonoverlapping(packet.as_ptr(), packet.len());
        }
        Ok(())
    }

    /// Length of the packet in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data_end as usize - self.data as usize
    }

    /// Whether the packet is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The packet.
    #[must_use]
    #[inline]
    pub fn packet(&self) -> &[u8] {
        // SAFETY: data..data_end is inside of the frame's initialized buffer.
        unsafe { std::slice::from_raw_parts(self.data, self.len()) }
    }

    /// Mutable access to the packet's bytes.
    #[must_use]
    #[inline]
    pub fn packet_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `packet`, and the frame is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len()) }
    }

    /// The packet's bytes and so many of the tailroom behind its end, which may be those of an earlier packet; `None` if the tailroom is
    /// shorter.
    pub fn packet_and_tailroom_mut(&mut self, behind: usize) -> Option<&mut [u8]> {
        let len = self.len() + behind;
        // SAFETY: TAILROOM bytes behind the packet are inside of the frame's initialized buffer, and the frame is borrowed mutably.
        (behind <= TAILROOM).then(|| unsafe { std::slice::from_raw_parts_mut(self.data, len) })
    }

    /// The metadata before the packet.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> &[u8] {
        let len = self.data as usize - self.data_meta as usize;
        // SAFETY: data_meta..data is inside of the frame's initialized buffer.
        unsafe { std::slice::from_raw_parts(self.data_meta, len) }
    }

    /// The bytes before the packet that programs can reach, metadata included. Those that no program has reached may be of an earlier
    /// packet in the same buffer.
    #[must_use]
    pub fn headroom(&self) -> &[u8] {
        // A program's packet begins behind what is kept.
        let len = (self.data as usize - self.hard_start as usize).saturating_sub(FRAME_KEPT);
        // SAFETY: the bytes are inside of the frame's buffer, and initialized behind what is kept; a length of 0 is before the data.
        unsafe { std::slice::from_raw_parts(self.data.wrapping_sub(len), len) }
    }

    /// Address of the first byte of the buffer.
    #[must_use]
    pub fn hard_start(&self) -> *mut u8 {
        self.hard_start
    }

    /// Size of the buffer in bytes, including headroom and tailroom.
    #[must_use]
    pub fn buffer_len(&self) -> u32 {
        self.buffer_len
    }

    /// Address of the packet's first byte.
    #[must_use]
    pub fn data(&self) -> *mut u8 {
        self.data
    }

    /// Address past the packet's last byte.
    #[must_use]
    pub fn data_end(&self) -> *mut u8 {
        self.data_end
    }

    /// Address of the metadata's first byte.
    #[must_use]
    pub fn data_meta(&self) -> *mut u8 {
        self.data_meta
    }

    fn offset_of_data(&self) -> i64 {
        self.data as i64 - self.hard_start as i64
    }

    fn metadata_len(&self) -> i64 {
        self.data as i64 - self.data_meta as i64
    }

    /// Cuts the end of the packet, so that it has at most `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            // SAFETY: the new end is between the packet's start and its end.
            self.data_end = unsafe { self.data.add(len) };
        }
    }

    /// Moves the packet's start by `delta` bytes, and the metadata with it (`bpf_xdp_adjust_head` in
    /// `net/core/filter.c`).
    ///
    /// # Errors
    /// [`AdjustError`]; the frame is unchanged.
    pub fn adjust_head(&mut self, delta: i32) -> Result<(), AdjustError> {
        let meta = self.metadata_len();
        let start = self.offset_of_data() + i64::from(delta);
        if start < FRAME_KEPT as i64 + meta {
            return Err(AdjustError::NoRoom);
        }
        let end = self.data_end as i64 - self.hard_start as i64;
        if start > end - MIN_PACKET as i64 {
            return Err(AdjustError::TooShort);
        }
        let old_meta = self.data_meta;
        self.expose(start - meta);
        // SAFETY: start - meta and start are between hard_start and data_end, as just checked.
        unsafe {
            self.data = self.hard_start.offset(start as isize);
            self.data_meta = self.data.offset(-(meta as isize));
            if meta > 0 {
                self.data_meta.copy_from(old_meta, meta as usize);
            }
        }
        Ok(())
    }

    /// Moves the metadata's start by `delta` bytes (`bpf_xdp_adjust_meta`).
    ///
    /// # Errors
    /// [`AdjustError`]; the frame is unchanged.
    pub fn adjust_meta(&mut self, delta: i32) -> Result<(), AdjustError> {
        let start = self.data_meta as i64 - self.hard_start as i64 + i64::from(delta);
        if start < FRAME_KEPT as i64 || start > self.offset_of_data() {
            return Err(AdjustError::NoRoom);
        }
        let len = self.offset_of_data() - start;
        // `xdp_metalen_invalid`: shared_info stores the length in one byte, and drivers compare metadata in 32-bit words.
        if len % 4 != 0 || len > 255 {
            return Err(AdjustError::BadMetadata);
        }
        self.expose(start);
        // SAFETY: start is between hard_start and data.
        self.data_meta = unsafe { self.hard_start.offset(start as isize) };
        Ok(())
    }

    /// Zeroes the bytes of the headroom from `start` on that no program of this packet has seen: they may be those of an earlier packet.
    fn expose(&mut self, start: i64) {
        let unseen = i64::from(self.exposed & !DESCRIBED) - start;
        if unseen > 0 {
            // SAFETY: the callers pass an offset from FRAME_KEPT to that of the data, and `exposed` is not after the data's.
            unsafe { self.hard_start.offset(start as isize).write_bytes(0, unseen as usize) };
            self.exposed = start as u16 | (self.exposed & DESCRIBED);
        }
    }

    /// Sets the metadata before the packet, as a driver or an earlier program would.
    ///
    /// # Errors
    /// [`AdjustError::BadMetadata`] or [`AdjustError::NoRoom`] as for [`adjust_meta`](Self::adjust_meta); the frame is
    /// unchanged.
    pub fn set_metadata(&mut self, metadata: &[u8]) -> Result<(), AdjustError> {
        let len = i32::try_from(metadata.len()).map_err(|_| AdjustError::BadMetadata)?;
        let old = self.metadata_len() as i32;
        self.adjust_meta(old - len)?;
        // SAFETY: data_meta..data is now `metadata.len()` bytes of the frame's buffer, which `metadata` cannot overlap.
        unsafe { self.data_meta.copy_from_nonoverlapping(metadata.as_ptr(), metadata.len()) };
        Ok(())
    }

    /// Metadata of the device about the packet, if there is any.
    #[must_use]
    pub fn device_metadata(&self) -> Option<DeviceMetadata> {
        // SAFETY: the reserved area is inside of the initialized buffer, and any bytes are such a structure of integers.
        (self.exposed & DESCRIBED != 0)
            .then(|| unsafe { self.hard_start.cast::<DeviceMetadata>().read_unaligned() })
    }

    /// Stores what the device tells about the packet, until the frame gets another packet.
    pub fn set_device_metadata(&mut self, metadata: &DeviceMetadata) {
        // SAFETY: the reserved area is part of the frame's buffer, and neither packet nor metadata begin before its end.
        unsafe { self.hard_start.cast::<DeviceMetadata>().write_unaligned(*metadata) };
        self.exposed |= DESCRIBED;
    }

    /// Moves the packet's end by `delta` bytes; added bytes are zero (`bpf_xdp_adjust_tail`).
    ///
    /// # Errors
    /// [`AdjustError`]; the frame is unchanged.
    pub fn adjust_tail(&mut self, delta: i32) -> Result<(), AdjustError> {
        let old_end = self.data_end as i64 - self.hard_start as i64;
        let end = old_end + i64::from(delta);
        if end > i64::from(self.buffer_len) - TAILROOM as i64 {
            return Err(AdjustError::NoRoom);
        }
        if end < self.offset_of_data() + MIN_PACKET as i64 {
            return Err(AdjustError::TooShort);
        }
        // SAFETY: both ends are inside of the buffer, before the tailroom.
        unsafe {
            if end > old_end {
                self.data_end.write_bytes(0, (end - old_end) as usize);
            }
            self.data_end = self.hard_start.offset(end as isize);
        }
        Ok(())
    }

    /// The program's return value, unchecked.
    #[must_use]
    #[inline]
    pub fn code(&self) -> u32 {
        self.verdict
    }

    /// The program's verdict; values that are no verdict count as aborted.
    #[must_use]
    #[inline]
    pub fn verdict(&self) -> Verdict {
        Verdict::from_code(self.verdict).unwrap_or(Verdict::Aborted)
    }

    /// Stores a program's return value.
    #[inline]
    pub fn set_code(&mut self, code: u32) {
        self.verdict = code;
    }

    /// The packet's program failed: [`Verdict::Aborted`], without a redirect target.
    #[cold]
    pub fn abort(&mut self) {
        self.set_code(Verdict::Aborted as u32);
        self.set_redirect(None);
    }

    /// The redirect target that a helper stored last, if any.
    #[must_use]
    #[inline]
    pub fn redirect(&self) -> Option<Redirect> {
        let target = match self.redirect_via {
            VIA_NOTHING => return None,
            VIA_INTERFACE => RedirectTarget::Interface { ifindex: self.redirect_key },
            map => RedirectTarget::Map { map, key: self.redirect_key },
        };
        Some(Redirect { target, flags: self.redirect_flags })
    }

    /// Stores or removes the redirect target.
    pub fn set_redirect(&mut self, redirect: Option<Redirect>) {
        let Some(Redirect { target, flags }) = redirect else {
            self.redirect_via = VIA_NOTHING;
            return;
        };
        (self.redirect_via, self.redirect_key) = match target {
            RedirectTarget::Interface { ifindex } => (VIA_INTERFACE, ifindex),
            RedirectTarget::Map { map, key } => (map, key),
        };
        self.redirect_flags = flags;
    }

    /// Index of the input interface.
    #[must_use]
    pub fn ingress_ifindex(&self) -> u32 {
        self.ingress_ifindex
    }

    /// Receive queue of the input interface.
    #[must_use]
    pub fn rx_queue(&self) -> u16 {
        self.rx_queue
    }

    /// Index of the output interface, for programs of device maps.
    #[must_use]
    pub fn egress_ifindex(&self) -> u32 {
        self.egress_ifindex
    }

    /// Sets the output interface, for programs of device maps.
    pub fn set_egress(&mut self, ifindex: u32) {
        self.egress_ifindex = ifindex;
    }

    /// Sets the interface and queue on which the packet was received.
    #[inline]
    pub fn set_ingress(&mut self, ifindex: u32, queue: u16) {
        self.ingress_ifindex = ifindex;
        self.rx_queue = queue;
    }
}
