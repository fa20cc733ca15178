//! How keys are hashed.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::SeedableRandomState;

/// The hash of a key's words. The same key of another length, or as bytes, has another.
#[inline(always)]
pub(crate) fn hash(seed: &SeedableRandomState, words: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = seed.build_hasher();
    words.for_each(|word| hasher.write_u64(word));
    hasher.finish()
}
