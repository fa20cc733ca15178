//! Rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use paceline::{Burst, BurstFault, MAX_BURST};

use super::contender::Contender;
use super::statistics::Summary;
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

/// Bursts that run between two readings of the clock: few enough to stay in the first caches, and packets enough to hide the clock.
const WINDOW: usize = 4;

/// Captures with fewer packets are repeated until they fill windows.
const SHORT: usize = 1024;

/// The memory that rounds work in.
pub(crate) struct Room {
    bursts: Vec<Burst>,
    singles: Vec<Burst>,
    cold: Vec<u8>,
}

impl Room {
    pub(crate) fn new(with_cold: bool) -> Self {
        Self {
            bursts: (0..WINDOW).map(|_| Burst::new(MAX_BURST)).collect(),
            singles: (0..WINDOW * MAX_BURST).map(|_| Burst::new(1)).collect(),
            cold: vec![0; if with_cold { COLD_BYTES } else { 0 }],
        }
    }

    /// Time for all packets, so many times over, without filling them in. If it is idle, nothing is run: the time is that of the harness.
    fn pass(
        &mut self,
        contender: &mut Contender,
        packets: &[&CapturedPacket],
        manner: Manner,
        is_idle: bool,
    ) -> Result<Duration, BurstFault> {
        let mut time = Duration::ZERO;
        let (bursts, of_each) = match manner {
            Manner::Bursts => (&mut self.bursts[..], MAX_BURST),
            // The caches are emptied before each.
            Manner::Cold => (&mut self.bursts[..1], MAX_BURST),
            Manner::Alone => (&mut self.singles[..], 1),
        };
        for packets in packets.chunks(bursts.len() * of_each) {
            let mut filled = 0;
            for (burst, packets) in bursts.iter_mut().zip(packets.chunks(of_each)) {
                contender.fill(burst, packets.iter().copied());
                contender.host.arrive(burst);
                filled += 1;
            }
            if manner == Manner::Cold {
                self.cold.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                black_box(&self.cold);
            }
            let start = Instant::now();
            if is_idle {
                for burst in bursts.iter_mut().take(filled) {
                    black_box(burst);
                }
            } else {
                for burst in bursts.iter_mut().take(filled) {
                    contender.run(burst)?;
                }
            }
            time += start.elapsed();
        }
        contender.drain();
        Ok(time)
    }
}

/// Nanoseconds for a packet, in each round of each contender.
pub(crate) type Times = Vec<Vec<f64>>;

/// A capture as often as whole windows need it, so that one packet alone is a burst too.
fn repeated(packets: &[CapturedPacket]) -> Vec<&CapturedPacket> {
    let (window, mut times) = (WINDOW * MAX_BURST, 1);
    if packets.len() < SHORT {
        while !(packets.len() * times).is_multiple_of(window) {
            times += 1;
        }
    }
    packets.iter().cycle().take(packets.len() * times).collect()
}

/// Measures contenders in turn, in another order each round, after a round that warms up. What the harness takes is measured beside, in
/// the same rounds, and its median is taken off.
pub(crate) fn rounds(
    contenders: &mut [Contender],
    packets: &[CapturedPacket],
    manner: Manner,
    (rounds, round): (u32, Duration),
    room: &mut Room,
) -> Result<Times, BurstFault> {
    let mut times = vec![Vec::new(); contenders.len()];
    let packets = repeated(packets);
    let Some(first) = contenders.first_mut().filter(|_| !packets.is_empty()) else { return Ok(times) };
    // The first pass meets cold code and empty maps.
    room.pass(first, &packets, manner, false)?;
    let once = room.pass(first, &packets, manner, false)?.max(Duration::from_nanos(100));
    let passes = (round.as_nanos() / once.as_nanos()).clamp(1, 1 << 20) as u32;
    let count = packets.len() as f64 * f64::from(passes);
    // The last one is the harness.
    let mut order: Vec<usize> = (0..=contenders.len()).collect();
    let mut idle = Vec::new();
    let mut rng = fastrand::Rng::with_seed(1);
    for number in 0..=rounds {
        rng.shuffle(&mut order);
        for &index in &order {
            let is_idle = index == contenders.len();
            let Some(contender) = contenders.get_mut(if is_idle { 0 } else { index }) else { continue };
            let mut time = Duration::ZERO;
            for _ in 0..passes {
                time += room.pass(contender, &packets, manner, is_idle)?;
            }
            let of_packet = time.as_nanos() as f64 / count;
            let times = times.get_mut(index).unwrap_or(&mut idle);
            times.extend((number > 0).then_some(of_packet));
        }
    }
    let harness = Summary::of(&idle).median;
    times.iter_mut().flatten().for_each(|time| *time = (*time - harness).max(0.0));
    Ok(times)
}
