//! Passes over packets: the part that the clock sees, and what is done before it.

use std::hint::black_box;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::live::ChainWorker;
use crate::scenario::Origin;
use paceline_engine::{BurstFault, Host, Program};
use paceline_frame::{Burst, FrameMeta, MAX_BURST, PushError};
use paceline_maps::Map;

use crate::measure::waits::Waits;

/// Memory that is written to empty the caches.
const COLD_BYTES: usize = 64 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines of a packet that are in the caches when it runs: those with its headers.
const HEADER_LINES: usize = 2;

/// Packets that run between two readings of the clock: few enough to stay in the first cache, and enough to hide the clock.
pub(crate) const WINDOW: usize = MAX_BURST;

/// A window that took longer than twice its best time and so much more may have been interrupted.
const DOUBTFUL: Duration = Duration::from_micros(20);

/// How packets are given to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// 64 in a call.
    Bursts,
    /// One in a call.
    Alone,
    /// 64 in a call, with cold caches before.
    Cold,
}

/// A packet as it is received.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its bytes, at most 262,144 (`MAX_PACKET` of the crate `paceline-frame`).
    pub bytes: &'a [u8],
    /// Metadata of its port.
    pub meta: FrameMeta,
}

/// The subject of a measurement.
pub enum Runner<'a> {
    /// A program.
    Program(&'a Program),
    /// A chain.
    Chain(&'a mut ChainWorker),
}

impl std::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

/// A program or chain that is measured, with its surroundings.
pub struct Contender<'a> {
    /// The program or chain.
    pub runner: Runner<'a>,
    /// Its world.
    pub host: &'a mut Host,
    /// Where packets come from.
    pub origin: Origin,
    /// Its ring buffers among other maps: they are emptied after each pass, as the program would find them full.
    pub maps: Vec<Arc<Map>>,
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender").finish_non_exhaustive()
    }
}

impl Contender<'_> {
    fn drain(&self) {
        for ring in self.maps.iter().filter_map(|map| map.ring_buffer()) {
            ring.consume(|_| {});
        }
    }
}

/// Fills a burst.
fn fill(
    burst: &mut Burst,
    packets: &[Packet<'_>],
    contender: &mut Contender<'_>,
) -> Result<(), MeasureError> {
    burst.clear();
    for packet in packets {
        burst.push(packet.bytes, packet.meta)?;
    }
    contender.origin.receive(burst, 0);
    contender.host.arrive(burst);
    Ok(())
}

/// The reason why nothing is measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A packet is too long for a frame.
    #[error(transparent)]
    Packet(#[from] PushError),
    /// A run ends with a fault.
    #[error("the run ended with a fault: {}", .0.fault)]
    Fault(BurstFault),
}

impl From<BurstFault> for MeasureError {
    fn from(fault: BurstFault) -> Self {
        Self::Fault(fault)
    }
}

/// The memory of passes, and the waits of their thread.
pub struct Room {
    burst: Burst,
    /// For chains, which run bursts only.
    singles: Vec<Burst>,
    cold: Vec<u8>,
    waits: Waits,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl Room {
    /// Room for passes of this thread, also with cold caches if so.
    #[must_use]
    pub fn new(with_cold: bool) -> Self {
        Self {
            burst: Burst::new(WINDOW),
            singles: (0..WINDOW).map(|_| Burst::new(1)).collect(),
            cold: vec![0; if with_cold { COLD_BYTES } else { 0 }],
            waits: Waits::of_this_thread(),
        }
    }

    /// Time for all packets, so many times over, without filling them in. If it is idle, nothing is run: the time is that of the harness.
    /// `best` has the best time of each window so far, which replaces that of one that was interrupted.
    pub(crate) fn pass(
        &mut self,
        contender: &mut Contender<'_>,
        packets: &[Packet<'_>],
        (manner, is_idle): (Manner, bool),
        best: &mut Vec<Duration>,
    ) -> Result<Duration, MeasureError> {
        let mut time = Duration::ZERO;
        let is_single = manner == Manner::Alone && matches!(contender.runner, Runner::Chain(_));
        for (index, packets) in packets.chunks(WINDOW).enumerate() {
            // A chunk has at most as many packets as there are singles.
            let (bursts, of_each) = match is_single {
                true => (&mut self.singles[..packets.len()], 1),
                false => (slice::from_mut(&mut self.burst), WINDOW),
            };
            for (burst, packets) in bursts.iter_mut().zip(packets.chunks(of_each)) {
                fill(burst, packets, contender)?;
            }
            match manner {
                Manner::Cold => empty_caches(&mut self.cold),
                Manner::Bursts | Manner::Alone => warm(bursts),
            }
            let taken = match (&mut contender.runner, manner) {
                (_, Manner::Alone) if is_idle && !is_single => idle_packets(bursts),
                _ if is_idle => idle_bursts(bursts),
                (Runner::Program(program), Manner::Alone) => run_alone(program, bursts, contender.host)?,
                (Runner::Program(program), _) => run_bursts(program, bursts, contender.host)?,
                (Runner::Chain(worker), _) => run_chain(worker, bursts, contender.host)?,
            };
            let Some(best) = best.get_mut(index) else {
                best.push(taken);
                time += taken;
                continue;
            };
            let is_doubtful = taken > *best * 2 + DOUBTFUL;
            if is_doubtful && self.waits.since() > Duration::ZERO {
                time += *best;
            } else {
                *best = taken.min(*best);
                time += taken;
            }
        }
        contender.drain();
        Ok(time)
    }
}

fn empty_caches(cold: &mut [u8]) {
    cold.iter_mut().step_by(LINE).for_each(|byte| *byte = byte.wrapping_add(1));
    black_box(cold);
}

/// Reads what programs read first: filling long packets in leaves the ends of the last ones in the caches.
fn warm(bursts: &[Burst]) {
    for frame in bursts.iter().flat_map(Burst::iter) {
        for byte in frame.packet().iter().step_by(LINE).take(HEADER_LINES) {
            black_box(*byte);
        }
    }
}

// The timed loops: a function each, so that profilers tell them apart.

#[inline(never)]
fn run_bursts(program: &Program, bursts: &mut [Burst], host: &mut Host) -> Result<Duration, BurstFault> {
    let start = Instant::now();
    for burst in bursts {
        program.run_burst(burst, host)?;
    }
    Ok(start.elapsed())
}

#[inline(never)]
fn run_alone(program: &Program, bursts: &mut [Burst], host: &mut Host) -> Result<Duration, BurstFault> {
    let start = Instant::now();
    for burst in bursts {
        let runs = burst.iter_mut().map(|mut frame| program.run_raw(&mut frame, host));
        let failed = runs.enumerate().find_map(|(index, run)| Some((index, run.err()?)));
        if let Some((index, fault)) = failed {
            return Err(BurstFault::at(burst, index, fault));
        }
    }
    Ok(start.elapsed())
}

#[inline(never)]
fn run_chain(
    worker: &mut ChainWorker,
    bursts: &mut [Burst],
    host: &mut Host,
) -> Result<Duration, BurstFault> {
    let start = Instant::now();
    for burst in bursts {
        worker.run_burst(burst, host)?;
    }
    Ok(start.elapsed())
}

#[inline(never)]
fn idle_bursts(bursts: &mut [Burst]) -> Duration {
    let start = Instant::now();
    for burst in bursts {
        black_box(burst);
    }
    start.elapsed()
}

#[inline(never)]
fn idle_packets(bursts: &mut [Burst]) -> Duration {
    let start = Instant::now();
    for burst in bursts {
        for frame in burst.iter_mut() {
            black_box(frame);
        }
    }
    start.elapsed()
}
