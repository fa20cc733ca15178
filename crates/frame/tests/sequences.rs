//! Random sequences of operations on bursts and pools, compared with a model: each packet keeps its bytes, and no frame is lost or has
//! two owners.

use std::sync::Arc;

use fastrand::Rng;
use paceline_frame::{Burst, Chunk, FrameMeta, FramePool, MAX_PACKET, PlaceError, PoolCache, Span};

/// Frames of each pool: few, so that pools are empty at times.
const FRAMES: u32 = 40;
const STEPS: usize = 400;

/// A packet that was taken out of a burst, or is to be placed in one.
struct Held {
    pool: usize,
    chunk: Chunk,
    span: Span,
    bytes: Vec<u8>,
}

struct World {
    rng: Rng,
    pools: [Arc<FramePool>; 2],
    caches: [PoolCache; 2],
    /// With the packets that they should have.
    bursts: Vec<(Burst, Vec<Vec<u8>>)>,
    held: Vec<Held>,
}

impl World {
    fn new(seed: u64) -> Self {
        let pools = [0, 1].map(|_| FramePool::on_heap(FRAMES));
        let mut bursts = vec![Burst::new(5), Burst::new(64)];
        bursts.extend(pools.iter().map(|pool| Burst::in_pool(7, pool).expect("free frames")));
        Self {
            rng: Rng::with_seed(seed),
            caches: [PoolCache::new(&pools[0]), PoolCache::new(&pools[1])],
            pools,
            bursts: bursts.into_iter().map(|burst| (burst, Vec::new())).collect(),
            held: Vec::new(),
        }
    }

    /// A packet of random bytes; few are longer than a frame.
    fn packet(&mut self) -> Vec<u8> {
        let most = if self.rng.u8(..) < 8 { MAX_PACKET } else { 200 };
        let len = self.rng.usize(14..=most);
        let start = self.rng.u8(..);
        (0..len).map(|at| start.wrapping_add(at as u8)).collect()
    }

    fn step(&mut self) {
        let index = self.rng.usize(..self.bursts.len());
        match self.rng.u8(..10) {
            0..=2 => self.push(index),
            3 => self.fill(),
            4 | 5 => self.place(index),
            6 => self.take(index),
            7 => self.shorten(index),
            8 => self.swap(index),
            _ => self.grow(index),
        }
        self.check(index);
    }

    fn push(&mut self, index: usize) {
        let packet = self.packet();
        let (burst, model) = &mut self.bursts[index];
        let is_full = burst.is_full();
        assert_eq!(burst.push(&packet, FrameMeta::default()).is_ok(), !is_full);
        model.extend((!is_full).then_some(packet));
    }

    fn fill(&mut self) {
        let (pool, bytes) = (self.rng.usize(..2), self.packet());
        let Some(mut chunk) = self.caches[pool].alloc() else { return };
        match self.pools[pool].fill(&mut chunk, &[], &bytes) {
            Some(span) => self.held.push(Held { pool, chunk, span, bytes }),
            None => self.caches[pool].free(chunk),
        }
    }

    fn place(&mut self, index: usize) {
        if self.held.is_empty() {
            return;
        }
        let Held { pool, chunk, span, bytes } = self.held.swap_remove(self.rng.usize(..self.held.len()));
        let (burst, model) = &mut self.bursts[index];
        let is_full = burst.is_full();
        match burst.place(&self.pools[pool], chunk, span, FrameMeta::default()) {
            Ok(()) => {
                assert!(!is_full);
                model.push(bytes);
            }
            Err(error) => {
                assert!(is_full, "{span:?} fits");
                assert!(matches!(error, PlaceError::Full(_)), "{error}");
                let chunk = error.into_chunk();
                self.held.push(Held { pool, chunk, span, bytes });
            }
        }
    }

    fn take(&mut self, index: usize) {
        let (burst, model) = &mut self.bursts[index];
        if burst.is_empty() {
            return;
        }
        let (at, pool) = (self.rng.usize(..burst.len()), self.rng.usize(..2));
        if let Some(taken) = burst.take(at, &self.pools[pool]) {
            assert_eq!(self.pools[pool].packet(&taken.chunk, taken.span), Some(&*model[at]));
            let bytes = std::mem::take(&mut model[at]);
            self.held.push(Held { pool, chunk: taken.chunk, span: taken.span, bytes });
        }
    }

    fn shorten(&mut self, index: usize) {
        let (burst, model) = &mut self.bursts[index];
        let len = self.rng.usize(..=burst.len());
        burst.truncate(len);
        model.truncate(len);
    }

    fn swap(&mut self, index: usize) {
        let (burst, model) = &mut self.bursts[index];
        if burst.is_empty() {
            return;
        }
        let (a, b) = (self.rng.usize(..burst.len()), self.rng.usize(..burst.len()));
        burst.swap(a, b);
        model.swap(a, b);
    }

    /// Moves a packet's start into the headroom, as programs do: the new bytes are zero if no packet was seen there.
    fn grow(&mut self, index: usize) {
        let (burst, model) = &mut self.bursts[index];
        if burst.is_empty() {
            return;
        }
        let at = self.rng.usize(..burst.len());
        let mut frame = burst.frame_mut(at);
        // SAFETY: the frame is neither moved nor swapped, only adjusted.
        let frame = unsafe { frame.descriptor_mut() };
        if frame.adjust_head(-8).is_ok() {
            frame.packet_mut()[..8].fill(0xee);
            model[at].splice(..0, [0xee; 8]);
        }
    }

    fn check(&self, index: usize) {
        let (burst, model) = &self.bursts[index];
        assert_eq!(burst.len(), model.len());
        for (frame, expected) in burst.iter().zip(model) {
            assert!(frame.packet() == expected, "a packet of {} bytes, not {}", frame.len(), expected.len());
        }
        for held in &self.held {
            let found = self.pools[held.pool].packet(&held.chunk, held.span);
            assert!(found == Some(&*held.bytes), "a held packet has changed");
        }
    }

    fn end(mut self) {
        for Held { pool, chunk, .. } in self.held.drain(..) {
            self.caches[pool].free(chunk);
        }
        drop((self.bursts, self.caches));
        for pool in &self.pools {
            assert_eq!(pool.free(), FRAMES as usize, "a frame is lost, or there twice");
        }
    }
}

#[test]
fn frames_keep_their_packets_and_their_owners() {
    let count = std::env::var("PACELINE_SEQUENCES").ok().and_then(|count| count.parse().ok());
    for seed in 0..count.unwrap_or(200) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.end();
    }
}
