//! Bursts: up to 64 frames with their packet memory.

use std::alloc::{self, Layout};
use std::ops::Deref;
use std::ptr::NonNull;

#[cfg(feature = "guard")]
use paceline_guard::{alloc_zeroed, dealloc};
#[cfg(not(feature = "guard"))]
use std::alloc::{alloc_zeroed, dealloc};

use crate::frame::Frame;
use crate::{BUFFER_LEN, HEADROOM, MAX_BURST, MAX_PACKET, TAILROOM, Verdict};

/// Metadata of a port about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameMeta {
    /// Time of reception, in nanoseconds since the epoch.
    pub timestamp_ns: u64,
    /// Length on the wire in bytes, which exceeds the captured length if a capture truncates packets.
    pub original_len: u32,
    /// Index of the capture's interface.
    pub interface: u32,
}

/// Reasons why a packet cannot be added to a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The burst holds as many frames as it can.
    #[error("burst is full")]
    Full,
    /// The packet is longer than [`MAX_PACKET`].
    #[error("packet of {0} bytes is longer than {MAX_PACKET}")]
    TooLong(usize),
}

/// A zero-initialized heap buffer.
struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

impl Buffer {
    fn zeroed(len: usize) -> Self {
        let layout =
            Layout::from_size_align(len.max(1), 64).expect("a buffer is far smaller than isize::MAX");
        // SAFETY: the layout's size is nonzero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { alloc::handle_alloc_error(layout) };
        Self { start, layout }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Distance between ordinary buffers in bytes. An odd number of cache lines, so that the headers of a burst's packets are
/// distributed over the sets of the first-level cache.
const STRIDE: usize = BUFFER_LEN + 64;
const _: () = assert!((STRIDE / 64) % 2 == 1);

/// Whether each buffer is surrounded by guard pages.
fn is_guarded() -> bool {
    #[cfg(feature = "guard")]
    return paceline_guard::is_on();
    #[cfg(not(feature = "guard"))]
    false
}

/// Up to [`MAX_BURST`] packets, each in a frame with its own buffer.
///
/// Access to frames is through [`FrameRef`] and [`FrameMut`] only: a plain `&mut Frame` could be swapped with a frame of another
/// burst and outlive its memory.
pub struct Burst {
    frames: Box<[Frame]>,
    metas: Box<[FrameMeta]>,
    len: usize,
    /// Buffers of slots that had to hold a packet too long for an ordinary buffer, or that are guarded.
    large: Vec<Buffer>,
    _memory: Buffer,
}

// SAFETY: the frames' pointers refer to buffers that the burst owns exclusively.
unsafe impl Send for Burst {}
// SAFETY: through a shared burst, frames and buffers can only be read.
unsafe impl Sync for Burst {}

impl Default for Burst {
    fn default() -> Self {
        Self::new(MAX_BURST)
    }
}

impl Burst {
    /// An empty burst for up to `capacity` packets.
    ///
    /// # Panics
    /// If `capacity` is 0 or more than [`MAX_BURST`].
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!((1..=MAX_BURST).contains(&capacity), "a burst holds 1 to {MAX_BURST} frames");
        let memory = Buffer::zeroed(capacity * STRIDE);
        let frames = (0..capacity)
            .map(|i| {
                // SAFETY: slot i has STRIDE >= BUFFER_LEN zeroed bytes of `memory`, which lives as long as the burst.
                unsafe { Frame::new(memory.start.as_ptr().add(i * STRIDE), BUFFER_LEN as u32) }
            })
            .collect();
        let metas = vec![FrameMeta::default(); capacity].into();
        let mut burst = Self { frames, metas, len: 0, large: Vec::new(), _memory: memory };
        if is_guarded() {
            (0..capacity).for_each(|slot| burst.give_buffer(slot, BUFFER_LEN));
        }
        burst
    }

    /// Number of packets in the burst.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the burst is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the burst is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.frames.len()
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Removes the packets from index `len` on, if any.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// [`PushError`]; the burst is unchanged.
    // Inlined, because a call would load `meta` as a whole right after it was stored in parts, without store forwarding.
    #[inline(always)]
    pub fn push(&mut self, packet: &[u8], meta: FrameMeta) -> Result<(), PushError> {
        if self.is_full() {
            return Err(PushError::Full);
        }
        if self.frames[self.len].fill(packet).is_err() {
            self.enlarge(self.len, packet.len())?;
            self.frames[self.len].fill(packet).map_err(|_| PushError::TooLong(packet.len()))?;
        }
        self.metas[self.len] = meta;
        self.len += 1;
        Ok(())
    }

    /// Gives a slot a buffer for packets of maximum length, which it keeps for the burst's lifetime.
    #[cold]
    fn enlarge(&mut self, slot: usize, packet_len: usize) -> Result<(), PushError> {
        if packet_len > MAX_PACKET {
            return Err(PushError::TooLong(packet_len));
        }
        self.give_buffer(slot, HEADROOM + MAX_PACKET + TAILROOM);
        Ok(())
    }

    /// Gives a slot its own buffer.
    fn give_buffer(&mut self, slot: usize, len: usize) {
        let buffer = Buffer::zeroed(len);
        // SAFETY: the buffer has `len` zeroed bytes and is kept in `large` as long as the burst lives.
        self.frames[slot] = unsafe { Frame::new(buffer.start.as_ptr(), len as u32) };
        self.large.push(buffer);
    }

    /// The frame of a packet.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[must_use]
    pub fn frame(&self, index: usize) -> FrameRef<'_> {
        FrameRef { frame: &self.frames[..self.len][index], meta: &self.metas[index] }
    }

    /// Mutable access to the frame of a packet.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[must_use]
    pub fn frame_mut(&mut self, index: usize) -> FrameMut<'_> {
        FrameMut { frame: &mut self.frames[..self.len][index] }
    }

    /// All frames, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FrameRef<'_>> {
        self.frames[..self.len].iter().zip(&self.metas).map(|(frame, meta)| FrameRef { frame, meta })
    }

    /// Mutable access to all frames, in order.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = FrameMut<'_>> {
        self.frames[..self.len].iter_mut().map(|frame| FrameMut { frame })
    }

    /// Swaps the positions of two packets.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.frames[..self.len].swap(a, b);
        self.metas.swap(a, b);
    }

    /// The descriptors of all packets, contiguous in memory, for engines.
    ///
    /// # Safety
    /// Frames must not be moved out of their places or swapped.
    #[must_use]
    #[inline]
    pub unsafe fn descriptors_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.len]
    }
}

/// A frame of a burst, with its metadata.
#[derive(Clone, Copy)]
pub struct FrameRef<'a> {
    frame: &'a Frame,
    meta: &'a FrameMeta,
}

impl FrameRef<'_> {
    /// The port's metadata of the packet.
    #[must_use]
    pub fn meta(&self) -> &FrameMeta {
        self.meta
    }
}

impl Deref for FrameRef<'_> {
    type Target = Frame;
    fn deref(&self) -> &Frame {
        self.frame
    }
}

/// A frame of a burst that can be changed, but not moved out of its place.
pub struct FrameMut<'a> {
    frame: &'a mut Frame,
}

impl FrameMut<'_> {
    /// Sets the interface and queue on which the packet was received.
    pub fn set_ingress(&mut self, ifindex: u32, queue: u16) {
        self.frame.set_ingress(ifindex, queue);
    }

    /// Sets the output interface, for programs of device maps.
    pub fn set_egress(&mut self, ifindex: u32) {
        self.frame.set_egress(ifindex);
    }

    /// Sets the metadata before the packet, as a driver or an earlier program would.
    ///
    /// # Errors
    /// [`AdjustError`](crate::AdjustError); the frame is unchanged.
    pub fn set_metadata(&mut self, metadata: &[u8]) -> Result<(), crate::AdjustError> {
        self.frame.set_metadata(metadata)
    }

    /// Mutable access to the packet's bytes.
    #[must_use]
    pub fn packet_mut(&mut self) -> &mut [u8] {
        self.frame.packet_mut()
    }

    /// Sets the verdict.
    pub fn set_verdict(&mut self, verdict: Verdict) {
        self.frame.set_code(verdict as u32);
    }

    /// Stores or removes the redirect target.
    pub fn set_redirect(&mut self, redirect: Option<crate::Redirect>) {
        self.frame.set_redirect(redirect);
    }

    /// The descriptor, for engines.
    ///
    /// # Safety
    /// The frame must not be moved out of its place or swapped with another.
    #[must_use]
    pub unsafe fn descriptor_mut(&mut self) -> &mut Frame {
        self.frame
    }
}

impl Deref for FrameMut<'_> {
    type Target = Frame;
    fn deref(&self) -> &Frame {
        self.frame
    }
}
