//! Bloom filters (`kernel/bpf/bloom_filter.c`): what was pushed is always found, and sometimes what was not. Sizes are the
//! kernel's, and so is the share of values found by mistake; which ones these are is not, because the hash differs.

use std::sync::atomic::Ordering::Relaxed;

use paceline_spec::{Errno, MapFlags};

use crate::create::{ACCESS, CreateErrorKind, MAX_ALLOCATION, NUMA_NODE, Request};
use crate::hashing::KeyHash;
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::slab::{Shape, Slab};
use crate::words;

/// Mask of the number of hashes in `map_extra`.
const MAX_HASHES: u64 = 15;
/// Number of hashes if the low bits are 0.
const DEFAULT_HASHES: u64 = 5;

/// `BPF_MAP_TYPE_BLOOM_FILTER`
pub(crate) struct BloomFilter {
    bits: Slab,
    /// Number of bits, a power of two, less 1.
    mask: u32,
    hashes: u32,
    value_size: usize,
    hash: KeyHash,
}

/// Bits of the filter, a power of two: 1.4 for each hash of each entry, as far as 32 bits count that.
fn bits_for(entries: u32, hashes: u32) -> u64 {
    let bits = entries.checked_mul(hashes).and_then(|bits| (bits / 5).checked_mul(7));
    match bits.filter(|&bits| bits <= 1 << 31) {
        Some(bits) => u64::from(bits).max(64).next_power_of_two(),
        None => 1 << 32,
    }
}

impl BloomFilter {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        let spec = &request.spec;
        request.check_value_at_most(MAX_ALLOCATION)?;
        request.check_entries()?;
        request.check_no_key()?;
        request.check_flags(NUMA_NODE | ACCESS | MapFlags::ZERO_SEED)?;
        request.check_extra_at_most(MAX_HASHES)?;
        let hashes = if spec.extra == 0 { DEFAULT_HASHES } else { spec.extra } as u32;
        let bits = bits_for(spec.max_entries, hashes);
        let shape = Shape { lanes: 1, cells: (bits / 64) as usize, words: 1 };
        request.check_memory(shape.bytes().map(|bytes| bytes as u64))?;
        let zero = spec.flags.contains(MapFlags::ZERO_SEED);
        let hash = KeyHash::new(zero);
        let (bits, mask) = (Slab::new(shape)?, (bits - 1) as u32);
        Ok(Box::new(Self { bits, mask, hashes, value_size: request.value_size(), hash }))
    }

    /// The bits of a value: each a step further than the one before, from two halves of one hash.
    fn bits_of(&self, value: &[u8]) -> impl Iterator<Item = u32> {
        let hash = self.hash.of(words::as_words(value));
        let (first, step) = ((hash >> 32) as u32, hash as u32 | 1);
        (0..self.hashes).map(move |i| first.wrapping_add(step.wrapping_mul(i)) & self.mask)
    }
}

impl MapOps for BloomFilter {
    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        for bit in self.bits_of(value) {
            for word in self.bits.words(0, bit as usize / 64) {
                word.fetch_or(1 << (bit % 64), Relaxed);
            }
        }
        Ok(())
    }

    fn peek(&self, value: &mut [u8]) -> Result<(), Errno> {
        let is_set =
            |bit: u32| words::load_first(self.bits.words(0, bit as usize / 64)) >> (bit % 64) & 1 != 0;
        if self.bits_of(value).all(is_set) { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn has_values(&self) -> bool {
        let words = u64::from(self.mask).div_ceil(64) as usize;
        (0..words).any(|cell| words::load_first(self.bits.words(0, cell)) != 0)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn set(&self, _key: &[u8], _value: &[u8], _mode: UpdateMode) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn remove(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::None(Errno::EOPNOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use super::bits_for;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!(bits_for(1, 1), 64);
        assert_eq!(bits_for(1000, 5), 8192);
        assert_eq!(bits_for(1 << 30, 2), 1 << 32);
        assert_eq!(bits_for(u32::MAX, 15), 1 << 32);
    }
}
