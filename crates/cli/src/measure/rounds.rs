//! Rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use paceline::{Burst, BurstFault, MAX_BURST};

use super::contender::Contender;
use crate::common::capture::CapturedPacket;

/// Memory that is written to empty the caches.
const COLD_BYTES: usize = 64 << 20;

/// How packets are given to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// 64 in a call.
    Bursts,
    /// One in a call.
    Alone,
    /// 64 in a call, with cold caches before.
    Cold,
}

/// The memory that rounds work in.
pub(crate) struct Room {
    burst: Burst,
    singles: Vec<Burst>,
    cold: Vec<u8>,
}

impl Room {
    pub(crate) fn new(with_cold: bool) -> Self {
        Self {
            burst: Burst::new(MAX_BURST),
            singles: (0..MAX_BURST).map(|_| Burst::new(1)).collect(),
            cold: vec![0; if with_cold { COLD_BYTES } else { 0 }],
        }
    }

    /// Time for all packets, so many times over, without filling them in.
    fn pass(
        &mut self,
        contender: &mut Contender,
        packets: &[CapturedPacket],
        manner: Manner,
    ) -> Result<Duration, BurstFault> {
        let mut time = Duration::ZERO;
        for packets in packets.chunks(MAX_BURST) {
            match manner {
                Manner::Bursts | Manner::Cold => {
                    contender.fill(&mut self.burst, packets);
                    contender.host.arrive(&self.burst);
                    if manner == Manner::Cold {
                        self.cold.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                        black_box(&self.cold);
                    }
                    let start = Instant::now();
                    contender.run(&mut self.burst)?;
                    time += start.elapsed();
                }
                Manner::Alone => {
                    for (burst, packet) in self.singles.iter_mut().zip(packets) {
                        contender.fill(burst, [packet]);
                    }
                    let start = Instant::now();
                    for burst in self.singles.iter_mut().take(packets.len()) {
                        contender.run(burst)?;
                    }
                    time += start.elapsed();
                }
            }
        }
        contender.drain();
        Ok(time)
    }
}

/// Nanoseconds for a packet, in each round of each contender.
pub(crate) type Times = Vec<Vec<f64>>;

/// Measures contenders in turn, in another order each round, after a round that warms up.
pub(crate) fn rounds(
    contenders: &mut [Contender],
    packets: &[CapturedPacket],
    manner: Manner,
    (rounds, round): (u32, Duration),
    room: &mut Room,
) -> Result<Times, BurstFault> {
    let mut times = vec![Vec::new(); contenders.len()];
    if packets.is_empty() {
        return Ok(times);
    }
    let mut passes = 1_u32;
    if let Some(first) = contenders.first_mut() {
        // The first pass meets cold code and empty maps.
        room.pass(first, packets, manner)?;
        let once = room.pass(first, packets, manner)?.max(Duration::from_nanos(100));
        passes = (round.as_nanos() / once.as_nanos()).clamp(1, 1 << 20) as u32;
    }
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut rng = fastrand::Rng::with_seed(1);
    for number in 0..=rounds {
        rng.shuffle(&mut order);
        for &index in &order {
            let Some(contender) = contenders.get_mut(index) else { continue };
            let mut time = Duration::ZERO;
            for _ in 0..passes {
                time += room.pass(contender, packets, manner)?;
            }
            let count = packets.len() as f64 * f64::from(passes);
            if let Some(times) = times.get_mut(index).filter(|_| number > 0) {
                times.push(time.as_nanos() as f64 / count);
            }
        }
    }
    Ok(times)
}
