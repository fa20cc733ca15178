//! Chunks that are in the kernel's hands.
#![allow(unsafe_code)]

use std::sync::Arc;

use paceline_frame::{Chunk, FramePool, PoolCache};

use super::umem::CHUNK;

/// Chunks that a port has lent to the kernel, by index, and the cache that they come from.
pub(super) struct Lent {
    cache: PoolCache,
    bits: Vec<u64>,
}

impl Lent {
    pub(super) fn new(cache: PoolCache) -> Self {
        let words = (cache.pool().frames() as usize).div_ceil(64);
        Self { cache, bits: vec![0; words] }
    }

    pub(super) fn pool(&self) -> &Arc<FramePool> {
        self.cache.pool()
    }

    /// A free chunk.
    pub(super) fn alloc(&mut self) -> Option<Chunk> {
        self.cache.alloc()
    }

    /// Whether this many chunks can be had.
    pub(super) fn reserve(&mut self, chunks: usize) -> bool {
        self.cache.reserve(chunks)
    }

    /// Gives a chunk back to the pool.
    pub(super) fn free(&mut self, chunk: Chunk) {
        self.cache.free(chunk);
    }

    /// Lends a chunk; returns its address in the packet memory.
    pub(super) fn lend(&mut self, chunk: Chunk) -> u64 {
        let index = chunk.into_index();
        self.bits[index as usize / 64] |= 1 << (index % 64);
        u64::from(index) * u64::from(CHUNK)
    }

    /// The lent chunk of an address; `None` if no chunk of this address is lent.
    pub(super) fn take(&mut self, address: u64) -> Option<Chunk> {
        let index = u32::try_from(address / u64::from(CHUNK)).ok()?;
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
    /// The socket is closed, so the kernel uses no chunk any more.
    fn drop(&mut self) {
        for index in 0..self.cache.pool().frames() {
            if let Some(chunk) = self.take(u64::from(index) * u64::from(CHUNK)) {
                self.cache.free(chunk);
            }
        }
    }
}
