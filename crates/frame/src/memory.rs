//! Memory that frames are made of.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

#[cfg(feature = "guard")]
use crate::guard::{alloc_zeroed, dealloc};
#[cfg(not(feature = "guard"))]
use std::alloc::{alloc_zeroed, dealloc};

use crate::layout::BUFFER_LEN;

/// Distance between ordinary buffers in bytes. An odd number of cache lines, so that the headers of a burst's packets are
/// distributed over the sets of the first-level cache.
pub(crate) const STRIDE: usize = BUFFER_LEN + 64;
const _: () = assert!((STRIDE / 64) % 2 == 1);

/// A zero-initialized heap buffer.
pub(crate) struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer is owned memory without thread affinity.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer gives its address only.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn zeroed(len: usize) -> Self {
        let layout =
            Layout::from_size_align(len.max(1), 64).expect("a buffer is far smaller than isize::MAX");
        // SAFETY: the layout's size is nonzero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { alloc::handle_alloc_error(layout) };
        Self { start, layout }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Division of memory into chunks of equal size, each of which holds the buffer of one frame; sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ChunkLayout {
    /// Address of the first chunk.
    pub start: NonNull<u8>,
    /// Distance between the starts of two chunks.
    pub stride: usize,
    /// Number of chunks.
    pub chunks: u32,
    /// Offset of the frame's buffer in a chunk: space before it belongs to the memory's owner, as in an AF_XDP UMEM.
    pub offset: usize,
    /// Size of the frame's buffer, with headroom and tailroom.
    pub buffer_len: u32,
}

/// Memory of a [`FramePool`](crate::FramePool).
///
/// # Safety
/// As long as the value lives, [`layout`](Self::layout) returns the same layout, `offset + buffer_len` is at most `stride`, and all
/// `chunks * stride` bytes from `start` are mapped, writable and initialized. Nothing accesses a chunk except through the pool's frames,
/// and except a device while a port has lent the chunk to it.
pub unsafe trait FrameMemory: Send + Sync {
    /// The division into chunks.
    fn layout(&self) -> ChunkLayout;
}

/// Frame memory on the heap. Pages are committed when they are used.
pub struct HeapMemory {
    buffer: Buffer,
    chunks: u32,
}

impl std::fmt::Debug for HeapMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapMemory").finish_non_exhaustive()
    }
}

impl HeapMemory {
    /// Memory for this many frames of [`BUFFER_LEN`] bytes.
    ///
    /// # Panics
    /// If `frames` is 0.
    #[must_use]
    pub fn new(frames: u32) -> Self {
        assert!(frames > 0, "frame memory without frames");
        Self { buffer: Buffer::zeroed(frames as usize * STRIDE), chunks: frames }
    }
}

// SAFETY: the buffer has `chunks * STRIDE` zeroed bytes that nothing else uses, and lives as long as the value.
unsafe impl FrameMemory for HeapMemory {
    fn layout(&self) -> ChunkLayout {
        ChunkLayout {
            start: self.buffer.start(),
            stride: STRIDE,
            chunks: self.chunks,
            offset: 0,
            buffer_len: BUFFER_LEN as u32,
        }
    }
}
