//! Bursts: up to 64 frames with their packet memory.

use std::ops::Deref;
use std::sync::Arc;

use super::verdict::Verdict;
use crate::frame::{Frame, MAX_OFFSET};
use crate::layout::{BUFFER_LEN, HEADROOM, MAX_BURST, MAX_PACKET, TAILROOM};
use crate::memory::{Buffer, STRIDE};
use crate::place_error::PlaceError;
use crate::pool::{Chunk, FramePool, PoolCache, Span};

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

/// Whether each buffer is surrounded by guard pages.
fn is_guarded() -> bool {
    #[cfg(feature = "guard")]
    return crate::guard::is_on();
    #[cfg(not(feature = "guard"))]
    false
}

/// A place for a packet in a burst.
struct Slot {
    /// Buffer for packets that are copied in.
    home: Home,
    /// Chunk of the packet, if it was placed here with its memory.
    placed: Option<Chunk>,
}

struct Home {
    start: *mut u8,
    len: u32,
    /// Chunk of the buffer, if it is a pool's.
    chunk: Option<Chunk>,
}

impl Home {
    fn frame(&self) -> Frame {
        // SAFETY: a home is `len` initialized bytes that the burst owns while it exists; at most one frame of it is in use.
        unsafe { Frame::new(self.start, self.len) }
    }

    /// Makes a frame one of this buffer, without a packet; verdict and origin stay.
    #[inline]
    fn give_to(&self, frame: &mut Frame) {
        // SAFETY: as above, and a buffer is longer than HEADROOM and TAILROOM.
        unsafe { frame.replace_buffer(self.start, self.len, EMPTY) };
    }
}

/// No packet, after the headroom.
const EMPTY: Span = Span { offset: HEADROOM as u32, len: 0, metadata: 0 };

/// Packet that was taken out of a burst with its memory.
#[derive(Debug)]
#[must_use = "a dropped chunk is lost to its pool"]
pub struct Taken {
    /// Memory of the packet.
    pub chunk: Chunk,
    /// Position of the packet in it.
    pub span: Span,
}

/// Up to [`MAX_BURST`] packets, each in a frame.
///
/// A packet is copied into a buffer of the burst ([`push`](Self::push)), or placed with the memory that a port received it in
/// ([`place`](Self::place)). Memory that is left when the burst is cleared goes back to its pool.
///
/// Access to frames is through [`FrameRef`] and [`FrameMut`] only: a plain `&mut Frame` could be swapped with a frame of another
/// burst and outlive its memory.
pub struct Burst {
    frames: Box<[Frame]>,
    metas: Box<[FrameMeta]>,
    /// Empty until a packet is placed, if the buffers are the burst's own: then those of the frames are the slots' homes.
    slots: Box<[Slot]>,
    len: usize,
    /// Maximum number of packets: that of the frames, unless it is limited for a while.
    limit: usize,
    /// Whether a packet was placed since the burst was empty.
    any_placed: bool,
    /// Interface and queue of packets that are added.
    ingress: (u32, u16),
    /// Caches of the pools whose memory is or was here.
    caches: Vec<PoolCache>,
    /// Buffers of slots that had to hold a packet too long for an ordinary buffer, or that are guarded.
    large: Vec<Buffer>,
    _memory: Option<Buffer>,
}

impl std::fmt::Debug for Burst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Burst").field("len", &self.len()).finish_non_exhaustive()
    }
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
    /// An empty burst for up to `capacity` packets, with buffers of its own.
    ///
    /// # Panics
    /// If `capacity` is 0 or more than [`MAX_BURST`].
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let memory = Buffer::zeroed(capacity * STRIDE);
        // SAFETY: slot i has STRIDE >= BUFFER_LEN zeroed bytes of `memory`, which lives as long as the burst.
        let start = |i: usize| unsafe { memory.start().as_ptr().add(i * STRIDE) };
        // SAFETY: as above; at most one frame of a buffer is in use.
        let frames = (0..capacity).map(|i| unsafe { Frame::new(start(i), BUFFER_LEN as u32) });
        let mut burst = Self::with_frames(frames.collect());
        burst._memory = Some(memory);
        if is_guarded() {
            (0..capacity).for_each(|slot| burst.give_buffer(slot, BUFFER_LEN));
        }
        burst
    }

    /// An empty burst for up to `capacity` packets whose buffers are frames of a pool, so that packets which are copied in can be taken
    /// out without another copy. `None` if the pool has not enough free frames.
    ///
    /// # Panics
    /// If `capacity` is 0 or more than [`MAX_BURST`].
    #[must_use]
    pub fn in_pool(capacity: usize, pool: &Arc<FramePool>) -> Option<Self> {
        let mut cache = PoolCache::new(pool);
        let mut homes = Vec::with_capacity(capacity);
        while homes.len() < capacity {
            let Some(chunk) = cache.alloc() else {
                homes.into_iter().filter_map(|home: Home| home.chunk).for_each(|chunk| cache.free(chunk));
                return None;
            };
            let (start, len) = pool.buffer(&chunk);
            homes.push(Home { start, len, chunk: Some(chunk) });
        }
        let mut burst = Self::with_frames(homes.iter().map(Home::frame).collect());
        burst.slots = homes.into_iter().map(|home| Slot { home, placed: None }).collect();
        burst.caches.push(cache);
        Some(burst)
    }

    fn with_frames(frames: Box<[Frame]>) -> Self {
        assert!((1..=MAX_BURST).contains(&frames.len()), "a burst holds 1 to {MAX_BURST} frames");
        Self {
            metas: vec![FrameMeta::default(); frames.len()].into(),
            limit: frames.len(),
            frames,
            slots: Box::default(),
            len: 0,
            any_placed: false,
            ingress: (0, 0),
            caches: Vec::new(),
            large: Vec::new(),
            _memory: None,
        }
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

    /// Whether a packet has this verdict.
    #[must_use]
    pub fn has(&self, verdict: Verdict) -> bool {
        self.iter().any(|frame| frame.verdict() == verdict)
    }

    /// Whether the burst is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    /// Number of packets that the burst has room for.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// Lets a function add at most `packets` packets.
    pub fn limited<R>(&mut self, packets: usize, add: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.limit;
        self.limit = before.min(self.len.saturating_add(packets));
        let result = add(self);
        self.limit = before;
        result
    }

    /// Sets the interface and queue on which packets that are added from now on were received; interface 0 and queue 0 at first.
    pub fn set_ingress(&mut self, ifindex: u32, queue: u16) {
        self.ingress = (ifindex, queue);
    }

    /// Removes all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes the packets from index `len` on, if any.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        if self.any_placed {
            self.release(len);
        }
        self.len = self.len.min(len);
    }

    /// Gives the memory of the placed packets from index `from` on back to its pools.
    fn release(&mut self, from: usize) {
        for index in from..self.len {
            if let Some(chunk) = self.slots[index].placed.take() {
                self.slots[index].home.give_to(&mut self.frames[index]);
                self.give_back(chunk);
            }
        }
        self.any_placed = from > 0;
    }

    /// Gives a chunk back to its pool. Every chunk in a burst came through a cache of the burst.
    fn give_back(&mut self, chunk: Chunk) {
        if let Some(cache) = self.cache_of(chunk.pool()) {
            cache.free(chunk);
        }
    }

    /// The cache of a pool whose memory is or was in this burst.
    #[inline]
    fn cache_of(&mut self, pool: u32) -> Option<&mut PoolCache> {
        self.caches.iter_mut().find(|cache| cache.id() == pool)
    }

    /// Adds a packet, which is copied.
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
        self.admit(meta);
        Ok(())
    }

    /// Adds a copy of a packet with its metadata, which has the headroom that is left before the packet: a program may have moved its
    /// start. It may have grown over [`MAX_PACKET`], as a frame of that length lets it.
    ///
    /// # Errors
    /// [`PushError::Full`], or [`PushError::TooLong`] from 4 GiB on; the burst is unchanged.
    pub fn push_frame(&mut self, packet: FrameRef<'_>) -> Result<(), PushError> {
        let offset = packet.span().offset as usize;
        self.push_at(offset, packet.metadata(), packet.packet(), *packet.meta())
    }

    /// Adds a packet with its metadata, `offset` bytes after the start of a buffer ([`push_frame`](Self::push_frame)).
    ///
    /// # Errors
    /// As [`push_frame`](Self::push_frame), and [`PushError::TooLong`] if the metadata does not fit before the packet.
    pub fn push_at(
        &mut self,
        offset: usize,
        metadata: &[u8],
        packet: &[u8],
        meta: FrameMeta,
    ) -> Result<(), PushError> {
        if self.is_full() {
            return Err(PushError::Full);
        }
        let too_long = || PushError::TooLong(packet.len());
        let size = |len: usize| u32::try_from(len).map_err(|_| too_long());
        // A packet that lost most of its bytes has less headroom than there would be.
        let offset = size(offset)?.min(MAX_OFFSET);
        let span = Span { offset, len: size(packet.len())?, metadata: size(metadata.len())? };
        if self.frames[self.len].fill_at(span, metadata, packet).is_err() {
            let len = size(offset as usize + packet.len() + TAILROOM)?;
            self.give_buffer(self.len, (len as usize).max(HEADROOM + MAX_PACKET + TAILROOM));
            self.frames[self.len].fill_at(span, metadata, packet).map_err(|_| too_long())?;
        }
        self.admit(meta);
        Ok(())
    }

    /// Counts the packet that is in the frame after the last one.
    #[inline(always)]
    fn admit(&mut self, meta: FrameMeta) {
        let (ifindex, queue) = self.ingress;
        self.frames[self.len].set_ingress(ifindex, queue);
        self.metas[self.len] = meta;
        self.len += 1;
    }

    /// Adds a packet with its memory, a chunk of `pool`, which is not copied.
    ///
    /// # Errors
    /// [`PlaceError`], which has the chunk; the burst is unchanged.
    #[inline(always)]
    pub fn place(
        &mut self,
        pool: &Arc<FramePool>,
        chunk: Chunk,
        span: Span,
        meta: FrameMeta,
    ) -> Result<(), PlaceError> {
        if chunk.pool() != pool.id() {
            return Err(PlaceError::OtherPool(chunk));
        }
        let (start, len) = pool.buffer(&chunk);
        if self.is_full() {
            return Err(PlaceError::Full(chunk));
        }
        if !Frame::fits(len, span) {
            return Err(PlaceError::NoRoom(chunk));
        }
        if self.cache_of(pool.id()).is_none() {
            self.know(pool);
        }
        // SAFETY: the span fits, and the buffer belongs to the chunk, which the burst keeps as long as the frame is in use.
        unsafe { self.frames[self.len].set_buffer(start, len, span) };
        self.slots[self.len].placed = Some(chunk);
        self.any_placed = true;
        self.admit(meta);
        Ok(())
    }

    /// Makes the burst one that frames of a pool can be placed in.
    #[cold]
    fn know(&mut self, pool: &Arc<FramePool>) {
        self.caches.push(PoolCache::new(pool));
        if self.slots.is_empty() {
            let home =
                |frame: &Frame| Home { start: frame.hard_start(), len: frame.buffer_len(), chunk: None };
            self.slots = self.frames.iter().map(|frame| Slot { home: home(frame), placed: None }).collect();
        }
    }

    /// Takes a packet out with its memory, if that is a chunk of `pool`; the burst's frame is empty afterwards. `None` if the memory is
    /// not the pool's, or the pool has no free frame to replace a buffer of the burst.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[inline(always)]
    #[must_use]
    pub fn take(&mut self, index: usize, pool: &FramePool) -> Option<Taken> {
        let span = self.frames[..self.len][index].span();
        let slot = self.slots.get_mut(index)?;
        let chunk = match slot.placed.take_if(|chunk| chunk.pool() == pool.id()) {
            Some(chunk) => chunk,
            None if slot.placed.is_none() => self.take_home(index, pool)?,
            None => return None,
        };
        self.slots[index].home.give_to(&mut self.frames[index]);
        Some(Taken { chunk, span })
    }

    /// Takes the chunk of a slot's own buffer, and replaces it.
    fn take_home(&mut self, index: usize, pool: &FramePool) -> Option<Chunk> {
        self.slots[index].home.chunk.as_ref().filter(|chunk| chunk.pool() == pool.id())?;
        let chunk = self.cache_of(pool.id())?.alloc()?;
        let (start, len) = pool.buffer(&chunk);
        std::mem::replace(&mut self.slots[index].home, Home { start, len, chunk: Some(chunk) }).chunk
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

    /// Gives a slot its own buffer, at most of 4 GiB.
    fn give_buffer(&mut self, slot: usize, len: usize) {
        let buffer = Buffer::zeroed(len);
        let home = Home { start: buffer.start().as_ptr(), len: len as u32, chunk: None };
        self.frames[slot] = home.frame();
        self.large.push(buffer);
        let Some(slot) = self.slots.get_mut(slot) else { return };
        if let Some(chunk) = std::mem::replace(&mut slot.home, home).chunk {
            self.give_back(chunk);
        }
    }

    /// The frame of a packet.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> FrameRef<'_> {
        FrameRef { frame: &self.frames[..self.len][index], meta: &self.metas[index] }
    }

    /// Mutable access to the frame of a packet.
    ///
    /// # Panics
    /// If `index` is not less than [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn frame_mut(&mut self, index: usize) -> FrameMut<'_> {
        FrameMut { frame: &mut self.frames[..self.len][index] }
    }

    /// All frames, in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FrameRef<'_>> {
        self.frames[..self.len].iter().zip(&self.metas).map(|(frame, meta)| FrameRef { frame, meta })
    }

    /// Mutable access to all frames, in order.
    #[inline]
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
        if !self.slots.is_empty() {
            self.slots.swap(a, b);
        }
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

impl Drop for Burst {
    fn drop(&mut self) {
        self.clear();
        let homes = self.slots.iter_mut().filter_map(|slot| slot.home.chunk.take());
        for chunk in homes.collect::<Vec<_>>() {
            self.give_back(chunk);
        }
    }
}

/// A frame of a burst, with its metadata.
#[derive(Clone, Copy)]
pub struct FrameRef<'a> {
    frame: &'a Frame,
    meta: &'a FrameMeta,
}

impl std::fmt::Debug for FrameRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameRef")
            .field("len", &self.len())
            .field("code", &self.code())
            .finish_non_exhaustive()
    }
}

impl<'a> FrameRef<'a> {
    /// The port's metadata of the packet.
    #[inline]
    #[must_use]
    pub fn meta(&self) -> &'a FrameMeta {
        self.meta
    }

    /// The packet, for as long as the burst is borrowed.
    #[inline]
    #[must_use]
    pub fn into_packet(self) -> &'a [u8] {
        self.frame.packet()
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

impl std::fmt::Debug for FrameMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameMut").finish_non_exhaustive()
    }
}

impl FrameMut<'_> {
    /// Sets the interface and queue on which the packet was received.
    #[inline]
    pub fn set_ingress(&mut self, ifindex: u32, queue: u16) {
        self.frame.set_ingress(ifindex, queue);
    }

    /// Sets the output interface, for programs of device maps.
    #[inline]
    pub fn set_egress(&mut self, ifindex: u32) {
        self.frame.set_egress(ifindex);
    }

    /// Sets the metadata before the packet, as a driver or an earlier program would.
    ///
    /// # Errors
    /// [`AdjustError`](crate::AdjustError); the frame is unchanged.
    pub fn set_metadata(&mut self, metadata: &[u8]) -> Result<(), crate::frame::AdjustError> {
        self.frame.set_metadata(metadata)
    }

    /// Stores what the device tells about the packet.
    pub fn set_device_metadata(&mut self, metadata: &crate::frame::DeviceMetadata) {
        self.frame.set_device_metadata(metadata);
    }

    /// Mutable access to the packet's bytes.
    #[must_use]
    #[inline]
    pub fn packet_mut(&mut self) -> &mut [u8] {
        self.frame.packet_mut()
    }

    /// Cuts the end of the packet, so that it has at most `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.frame.truncate(len);
    }

    /// Sets the verdict.
    #[inline]
    pub fn set_verdict(&mut self, verdict: Verdict) {
        self.frame.set_code(verdict as u32);
    }

    /// The packet's program failed: [`Verdict::Aborted`], without a redirect target.
    pub fn abort(&mut self) {
        self.frame.abort();
    }

    /// Stores or removes the redirect target.
    #[inline]
    pub fn set_redirect(&mut self, redirect: Option<crate::frame::Redirect>) {
        self.frame.set_redirect(redirect);
    }

    /// The descriptor, for engines.
    ///
    /// # Safety
    /// The frame must not be moved out of its place or swapped with another.
    #[must_use]
    #[inline]
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
