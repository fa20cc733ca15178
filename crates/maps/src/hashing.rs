//! Hashing of keys.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::SeedableRandomState;

use crate::words;

/// 2^64 by the golden ratio, odd (Knuth, The Art of Computer Programming 3, 6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash function of keys.
pub(crate) struct KeyHash(SeedableRandomState);

impl KeyHash {
    /// With a random seed, or with the same one always (`BPF_F_ZERO_SEED`).
    pub(crate) fn new(zero_seed: bool) -> Self {
        Self(if zero_seed { SeedableRandomState::fixed() } else { SeedableRandomState::random() })
    }

    /// The hash of a key's words. The same key of another length, or as bytes, has another.
    ///
    /// Keys often differ in one word only, which counts up. foldhash spreads such keys evenly for most seeds, but for one seed in fifty it
    /// maps them to a few of the buckets; one more multiplication spreads them for all seeds.
    #[inline(always)]
    pub(crate) fn of(&self, words: impl Iterator<Item = u64>) -> u64 {
        let mut hasher = self.0.build_hasher();
        words.for_each(|word| hasher.write_u64(word));
        hasher.finish().wrapping_mul(MULTIPLIER)
    }

    /// The hash of a key's bytes, as words.
    #[inline]
    pub(crate) fn of_bytes(&self, key: &[u8]) -> u64 {
        match (<[u8; 4]>::try_from(key), <[u8; 8]>::try_from(key)) {
            (Ok(key), _) => self.of(words::key_of_half_word(u32::from_ne_bytes(key)).into_iter()),
            (_, Ok(key)) => self.of([u64::from_ne_bytes(key)].into_iter()),
            _ => self.of(words::as_words(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use foldhash::SharedSeed;

    use super::*;

    /// Keys that count up, as structures have them: alone, in the middle, in network order, in two places.
    fn keys() -> Vec<[Vec<u64>; 6]> {
        let keys = |i: u32| {
            let n = u64::from(i);
            let address = u64::from((0x0a00_0000 + i).swap_bytes());
            let grid = (n % 32) | ((n / 32) << 32);
            [vec![n], vec![n << 8], vec![n << 32], vec![address], vec![grid], vec![n, 0x5a5a]]
        };
        (0..1000).map(keys).collect()
    }

    #[test]
    fn keys_that_count_up_are_spread_whatever_the_seed() {
        const BUCKETS: usize = 125;
        let keys = keys();
        for seed in 0..300_u64 {
            let shared: &'static SharedSeed = Box::leak(Box::new(SharedSeed::from_u64(seed)));
            let hash = KeyHash(SeedableRandomState::with_seed(!seed, shared));
            for form in 0..6 {
                let mut counts = [0_usize; BUCKETS];
                for key in &keys {
                    let hash = hash.of(key[form].iter().copied());
                    counts[((hash >> 32) as usize * BUCKETS) >> 32] += 1;
                }
                // By chance it is 16 of them, and hardly ever 50.
                let beyond: usize = counts.iter().map(|count| count.saturating_sub(12)).sum();
                assert!(beyond < 70, "seed {seed}, form {form}: {beyond} of 1000 find their bucket full");
            }
        }
    }
}
