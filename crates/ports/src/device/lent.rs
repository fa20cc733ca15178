//! Chunks that a device uses.
//!
//! The set of lent chunks is what makes an index that the kernel returns a chunk again, once; what the kernel still has when the
//! socket is closed comes back then. A UMEM's chunks are 4,096 bytes and begin with the 256 bytes of headroom that the kernel
//! leaves.
#![allow(unsafe_code)]

use std::sync::Arc;

use paceline_frame::{Chunk, FramePool, PoolCache};

/// Chunks that a port has lent to its device, by index, and the cache that they come from.
pub(crate) struct Lent {
    cache: PoolCache,
    bits: Vec<u64>,
}

impl Lent {
    pub(crate) fn new(cache: PoolCache) -> Self {
        let words = (cache.pool().frames() as usize).div_ceil(64);
        Self { cache, bits: vec![0; words] }
    }

    pub(crate) fn pool(&self) -> &Arc<FramePool> {
        self.cache.pool()
    }

    /// A free chunk.
    pub(crate) fn alloc(&mut self) -> Option<Chunk> {
        self.cache.alloc()
    }

    /// Whether this many chunks can be had.
    pub(crate) fn reserve(&mut self, chunks: usize) -> bool {
        self.cache.reserve(chunks)
    }

    /// Gives a chunk back to the pool.
    pub(crate) fn free(&mut self, chunk: Chunk) {
        self.cache.free(chunk);
    }

    /// Lends a chunk; returns its index.
    pub(crate) fn lend(&mut self, chunk: Chunk) -> u32 {
        let index = chunk.into_index();
        self.bits[index as usize / 64] |= 1 << (index % 64);
        index
    }

    /// The lent chunk of an index; `None` if it is not lent.
    pub(crate) fn take(&mut self, index: u32) -> Option<Chunk> {
        let word = self.bits.get_mut(index as usize / 64)?;
        let bit = 1 << (index % 64);
        if *word & bit == 0 {
            return None;
        }
        *word &= !bit;
        // SAFETY: the bit says that the chunk of this index was given away in `lend`, and it is cleared.
        unsafe { self.cache.pool().chunk(index) }
    }
}

impl Drop for Lent {
    /// The device is closed, so it uses no chunk any more.
    fn drop(&mut self) {
        for index in 0..self.cache.pool().frames() {
            if let Some(chunk) = self.take(index) {
                self.cache.free(chunk);
            }
        }
    }
}
