//! Random packets by seed: the shipped traffic, cut, extended and changed.

use std::sync::OnceLock;

use fastrand::Rng;

use crate::compare::Input;
use crate::kernel::{MAX_PACKET, MIN_PACKET};
use crate::traffic;

/// The base packets: those of the shipped capture whose length a test run supports.
#[must_use]
pub fn pool() -> &'static [Vec<u8>] {
    static POOL: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    POOL.get_or_init(|| {
        let packets = traffic::packets().into_iter().map(|packet| packet.bytes);
        packets.filter(|bytes| (MIN_PACKET..=MAX_PACKET).contains(&bytes.len())).collect()
    })
}

/// This number of packets, derived from a pool. The same seed and pool give the same packets.
#[must_use]
pub fn packets_of(pool: &[Vec<u8>], seed: u64, count: usize) -> Vec<Input> {
    let mut rng = Rng::with_seed(seed ^ 0x7061_636b);
    (0..count).map(|_| packet(pool, &mut rng)).collect()
}

fn packet(pool: &[Vec<u8>], rng: &mut Rng) -> Input {
    let mut data = rng.choice(pool).cloned().unwrap_or_else(|| vec![0; 60]);
    match rng.u8(..8) {
        0 => data.truncate(rng.usize(MIN_PACKET..=data.len())),
        1 => data.truncate(rng.usize(MIN_PACKET..=data.len().min(64))),
        2 => data.resize(data.len() + rng.usize(..80), rng.u8(..)),
        3 => data = (0..rng.usize(MIN_PACKET..200)).map(|_| rng.u8(..)).collect(),
        _ => {}
    }
    if rng.u8(..3) == 0 {
        for _ in 0..rng.usize(1..6) {
            let place = rng.usize(..data.len());
            data[place] = [rng.u8(..), rng.u8(..4), 0, 0x7f, 0x80, 0xff][rng.usize(..6)];
        }
    }
    data.truncate(MAX_PACKET - 64);
    let meta_words = if rng.u8(..4) == 0 { rng.usize(1..9) } else { 0 };
    Input { data, meta: (0..4 * meta_words).map(|_| rng.u8(..)).collect() }
}
