//! Pools of frames: memory divided into chunks, which bursts and ports pass on to each other.
//!
//! A chunk is the right to use one part of the memory: it cannot be copied, and whoever has it is the only user of the bytes. A
//! thread takes chunks from its cache, which locks the pool once in up to 64.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layout::{FRAME_KEPT, HEADROOM, TAILROOM};
use crate::memory::{ChunkLayout, FrameMemory, HeapMemory};

/// Chunks that move between a cache and its pool at once.
const BATCH: usize = 64;

/// A chunk of a pool's memory. Whoever has the value is the only one that uses the chunk.
///
/// A dropped value is not given back: its chunk is lost until the pool is dropped.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped chunk is lost to its pool"]
pub struct Chunk {
    pool: u32,
    index: u32,
}

impl Chunk {
    /// Index in the pool, from 0.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Gives the chunk to a device, which knows it by its index; [`FramePool::chunk`] makes a chunk of the index again.
    #[inline]
    #[must_use]
    pub fn into_index(self) -> u32 {
        self.index
    }

    /// Number of the pool ([`FramePool::id`]).
    #[inline]
    #[must_use]
    pub fn pool(&self) -> u32 {
        self.pool
    }
}

/// Position of a packet in the buffer of a chunk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the packet's first byte from the start of the buffer.
    pub offset: u32,
    /// Length of the packet.
    pub len: u32,
    /// Length of the metadata before the packet.
    pub metadata: u32,
}

/// Frames in memory of one kind, shared by the bursts and ports of a process.
pub struct FramePool {
    id: u32,
    layout: ChunkLayout,
    stride: ExactDivisor,
    free: Mutex<Vec<u32>>,
    _memory: Box<dyn FrameMemory>,
}

// SAFETY: the layout's address is that of `_memory`, which is Send; the pool itself only computes with it.
unsafe impl Send for FramePool {}
// SAFETY: bytes are accessed through chunks only, each of which has one owner.
unsafe impl Sync for FramePool {}

/// Division without a remainder by a shift and a multiplication, which takes a few cycles for any divisor (Hacker's Delight, 10-16).
struct ExactDivisor {
    /// Number of times that the divisor has the factor 2.
    shift: u32,
    /// Inverse of what is left of the divisor, modulo the range of a `usize`.
    inverse: usize,
}

impl ExactDivisor {
    /// # Panics
    /// If the divisor is 0.
    fn new(divisor: usize) -> Self {
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // An odd number is its own inverse modulo 8, and each step of Newton's doubles the number of bits that are right.
        let inverse = (0..5)
            .fold(odd, |inverse, _| inverse.wrapping_mul(2_usize.wrapping_sub(odd.wrapping_mul(inverse))));
        Self { shift, inverse }
    }

    /// The quotient of a multiple of the divisor.
    #[inline]
    fn quotient(&self, multiple: usize) -> usize {
        (multiple >> self.shift).wrapping_mul(self.inverse)
    }
}

/// Number of the next pool.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl FramePool {
    /// A pool of all frames of a memory.
    ///
    /// # Panics
    /// If a buffer of the memory has no room for headroom and tailroom, or all 2^32 pool numbers of the process have been used.
    #[must_use]
    pub fn new(memory: impl FrameMemory + 'static) -> Arc<Self> {
        let layout = memory.layout();
        assert!(layout.buffer_len as usize >= HEADROOM + TAILROOM, "buffer smaller than its reserved areas");
        let id = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| id.checked_add(1));
        let id = id.expect("a process makes fewer than 2^32 pools");
        // Taken from the end: low addresses first.
        let free = Mutex::new((0..layout.chunks).rev().collect());
        let stride = ExactDivisor::new(layout.stride);
        Arc::new(Self { id, layout, stride, free, _memory: Box::new(memory) })
    }

    /// A pool of this many frames on the heap.
    ///
    /// # Panics
    /// If `frames` is 0.
    #[must_use]
    pub fn on_heap(frames: u32) -> Arc<Self> {
        Self::new(HeapMemory::new(frames))
    }

    /// Number of the pool, unique in the process.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.layout.chunks
    }

    /// Number of frames that are neither in use nor in a cache.
    #[must_use]
    pub fn free(&self) -> usize {
        self.lock().len()
    }

    /// Maximum size of a packet to fill a frame with, in bytes.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.layout.buffer_len as usize - HEADROOM - TAILROOM
    }

    /// Start and size in bytes of the memory that the chunks are parts of.
    #[must_use]
    pub fn memory(&self) -> (*mut u8, usize) {
        (self.layout.start.as_ptr(), self.layout.stride * self.layout.chunks as usize)
    }

    /// Index of the chunk whose buffer begins at an address; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn index_at(&self, buffer: *const u8) -> Option<u32> {
        let offset =
            (buffer as usize).checked_sub(self.layout.start.as_ptr() as usize + self.layout.offset)?;
        let index = self.stride.quotient(offset);
        // Of an offset that is no multiple the quotient is some other number.
        let is_there = index < self.layout.chunks as usize && index * self.layout.stride == offset;
        is_there.then_some(index as u32)
    }

    /// Start and size of a chunk's buffer.
    ///
    /// # Panics
    /// If the chunk is of another pool.
    #[inline]
    #[must_use]
    pub fn buffer(&self, chunk: &Chunk) -> (*mut u8, u32) {
        assert_eq!(chunk.pool, self.id, "a chunk of another pool");
        let at = chunk.index as usize * self.layout.stride + self.layout.offset;
        // SAFETY: the pool makes only chunks of its layout, so the buffer is inside of its memory.
        (unsafe { self.layout.start.as_ptr().add(at) }, self.layout.buffer_len)
    }

    /// The buffer of a chunk. The packet belongs after [`HEADROOM`](crate::HEADROOM) bytes, and before the last
    /// [`TAILROOM`](crate::TAILROOM) bytes.
    ///
    /// # Panics
    /// If the chunk is of another pool.
    #[inline]
    #[must_use]
    pub fn buffer_mut<'a>(&'a self, chunk: &'a mut Chunk) -> &'a mut [u8] {
        let (start, len) = self.buffer(chunk);
        // SAFETY: the buffer is initialized memory of the borrowed pool, which only the owner of `chunk` uses.
        unsafe { std::slice::from_raw_parts_mut(start, len as usize) }
    }

    /// Copies a packet into a chunk, behind its metadata and the headroom. `None` if one of them is too long; the chunk is unchanged.
    ///
    /// # Panics
    /// If the chunk is of another pool.
    #[inline]
    #[must_use]
    pub fn fill(&self, chunk: &mut Chunk, metadata: &[u8], packet: &[u8]) -> Option<Span> {
        let (start, _) = self.buffer(chunk);
        if packet.len() > self.capacity() || metadata.len() > HEADROOM - FRAME_KEPT {
            return None;
        }
        // SAFETY: both ranges are inside of the buffer, which only the owner of `chunk` uses.
        unsafe {
            let data = start.add(HEADROOM);
            data.sub(metadata.len()).copy_from_nonoverlapping(metadata.as_ptr(), metadata.len());
            data.copy_from_nonoverlapping(packet.as_ptr(), packet.len());
        }
        Some(Span { offset: HEADROOM as u32, len: packet.len() as u32, metadata: metadata.len() as u32 })
    }

    /// The packet in a chunk; `None` if the span exceeds the buffer.
    ///
    /// # Panics
    /// If the chunk is of another pool.
    #[inline]
    #[must_use]
    pub fn packet<'a>(&'a self, chunk: &'a Chunk, span: Span) -> Option<&'a [u8]> {
        let (start, len) = self.buffer(chunk);
        let end = u64::from(span.offset) + u64::from(span.len);
        // SAFETY: the span is inside of the buffer, which does not change while the chunk is borrowed.
        (end <= u64::from(len)).then(|| unsafe {
            std::slice::from_raw_parts(start.add(span.offset as usize), span.len as usize)
        })
    }

    /// A chunk by its index, for ports whose devices know chunks by address.
    ///
    /// # Safety
    /// The index must be that of a chunk of this pool that was given away by [`Chunk::into_index`], and the device does not use the
    /// chunk any more. Each index makes one chunk.
    #[must_use]
    #[inline]
    pub unsafe fn chunk(&self, index: u32) -> Option<Chunk> {
        (index < self.layout.chunks).then_some(Chunk { pool: self.id, index })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FramePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramePool")
            .field("id", &self.id)
            .field("layout", &self.layout)
            .field("free", &self.free())
            .finish()
    }
}

/// Free chunks of a pool for one thread: the pool's lock is taken once in up to 64 frames.
#[derive(Debug)]
pub struct PoolCache {
    id: u32,
    pool: Arc<FramePool>,
    free: Vec<u32>,
    /// Chunks that are taken from the pool at once; twice as many may be in the cache.
    batch: usize,
}

impl PoolCache {
    /// An empty cache. Small pools have small caches, so that these do not hold most frames.
    #[must_use]
    pub fn new(pool: &Arc<FramePool>) -> Self {
        let batch = (pool.frames() as usize / 64).clamp(1, BATCH);
        Self { id: pool.id, pool: Arc::clone(pool), free: Vec::with_capacity(2 * batch), batch }
    }

    /// Number of the pool.
    #[inline]
    #[must_use]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The pool.
    #[inline]
    #[must_use]
    pub fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// A free chunk; `None` if the pool has none.
    #[inline]
    pub fn alloc(&mut self) -> Option<Chunk> {
        if self.free.is_empty() {
            self.refill();
        }
        self.free.pop().map(|index| Chunk { pool: self.id, index })
    }

    /// Whether this many chunks can be had by [`alloc`](Self::alloc): they are taken from the pool now.
    pub fn reserve(&mut self, chunks: usize) -> bool {
        if self.free.len() < chunks {
            self.take(chunks - self.free.len());
        }
        self.free.len() >= chunks
    }

    #[cold]
    fn refill(&mut self) {
        self.take(self.batch);
    }

    /// Takes chunks from the pool, as far as it has them.
    fn take(&mut self, chunks: usize) {
        let mut pool = self.pool.lock();
        let start = pool.len().saturating_sub(chunks);
        self.free.extend(pool.drain(start..));
    }

    /// Gives a chunk back.
    ///
    /// # Panics
    /// If the chunk is of another pool.
    #[inline]
    pub fn free(&mut self, chunk: Chunk) {
        assert_eq!(chunk.pool, self.id, "a chunk of another pool");
        if self.free.len() >= 2 * self.batch {
            self.flush(self.batch);
        }
        self.free.push(chunk.index);
    }

    /// Gives the chunks from `keep` on to the pool.
    #[cold]
    fn flush(&mut self, keep: usize) {
        self.pool.lock().extend(self.free.drain(keep..));
    }
}

impl Drop for PoolCache {
    fn drop(&mut self) {
        self.flush(0);
    }
}
