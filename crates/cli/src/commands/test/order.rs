//! The order in which tests run.

use std::time::SystemTime;

/// A seed from the time.
pub(super) fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64 % 1_000_000)
}

/// Shuffles by a seed.
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    fastrand::Rng::with_seed(seed).shuffle(items);
}
