//! Running a capture through a program.

mod parallel;

use std::ops::ControlFlow;

use paceline_capture::{CaptureReader, CaptureWriter, ReadError, WriteError};
use paceline_engine::{BurstFault, Chain, Fault, Host, Program, Target};
use paceline_frame::{Burst, FrameRef, MAX_BURST, Verdict};
use paceline_ports::queue_of;
use paceline_spec::Meaning;

pub use parallel::replay_on;

use super::live::ChainWorker;
use crate::scenario::Origin;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that got a verdict.
    pub packets: u64,
    /// Their bytes as captured, before the program.
    pub bytes: u64,
    /// Packets per verdict, in the order of [`Verdict::ALL`].
    pub verdicts: [u64; 5],
    /// Packets whose program returned an invalid verdict; they count as aborted too.
    pub unknown: u64,
}

impl Tally {
    /// Packets that got a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Adds other counts.
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.unknown += other.unknown;
        self.verdicts.iter_mut().zip(other.verdicts).for_each(|(sum, count)| *sum += count);
    }

    /// Counts a packet that had so many bytes before the program.
    fn count_frame(&mut self, frame: FrameRef<'_>, before: u64) {
        self.count(frame.verdict(), Verdict::from_code(frame.code()).is_none(), before);
    }

    fn count(&mut self, verdict: Verdict, is_unknown: bool, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.verdicts[verdict as usize] += 1;
        self.unknown += u64::from(is_unknown);
    }
}

/// Outputs of packets.
#[derive(Default)]
pub struct Outputs<'a> {
    /// Packets with verdict pass, tx or redirect.
    pub passed: Option<CaptureWriter<'a>>,
    /// Packets that were dropped or aborted.
    pub dropped: Option<CaptureWriter<'a>>,
}

/// Options of [`replay`], set one after the other: `ReplayOptions::default().count(20).cpus(2)`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// Stop after this many packets.
    pub count: Option<u64>,
    /// Where packets come from.
    pub origin: Origin,
    /// One packet at a time, so that timers fire between any two, at the times of the packets if the host's time is theirs.
    pub packet_by_packet: bool,
    /// CPUs that packets come in on, all of a flow on the same one and on the queue of its number; 0 is the host's own alone. The
    /// program's maps must have as many, or the packet is a fault. More than one take packets one at a time.
    pub cpus: usize,
}

impl ReplayOptions {
    /// Stops after this many packets; `None` runs all.
    #[must_use]
    pub fn count(mut self, packets: impl Into<Option<u64>>) -> Self {
        self.count = packets.into();
        self
    }

    /// Sets where packets come from.
    #[must_use]
    pub const fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Runs one packet at a time, so that timers fire between any two.
    #[must_use]
    pub const fn packet_by_packet(mut self, each: bool) -> Self {
        self.packet_by_packet = each;
        self
    }

    /// Spreads flows over this many CPUs; 0 runs all packets on the host's own.
    #[must_use]
    pub const fn cpus(mut self, cpus: usize) -> Self {
        self.cpus = cpus;
        self
    }
}

/// A run ended early. Counts and outputs until then are valid.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The capture cannot be read further.
    #[error(transparent)]
    Read(ReadError),
    /// A packet caused an invalid access of the program.
    #[error("packet {packet}: {fault}")]
    Fault {
        /// Number of the packet in the capture, from 1.
        packet: u64,
        /// The invalid access.
        #[source]
        fault: Fault,
    },
    /// A timer callback made an invalid access.
    #[error("timer after packet {packet}: {fault}")]
    Timer {
        /// Number of the last packet that came before, from 1.
        packet: u64,
        /// The invalid access.
        #[source]
        fault: Fault,
    },
    /// The capture of passed packets cannot be written.
    #[error(transparent)]
    WritePassed(WriteError),
    /// The capture of dropped packets cannot be written.
    #[error(transparent)]
    WriteDropped(WriteError),
}

/// Runs the packets of a capture, a burst at a time.
pub trait Runner {
    /// Runs the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet caused an invalid access of a program.
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault>;

    /// Whether frames get a number of bytes to keep in the place of a verdict: a socket filter's.
    fn keeps_bytes(&self) -> bool {
        false
    }
}

impl Runner for ChainWorker {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Self::run_burst(self, burst, host)
    }
}

macro_rules! runners {
    ($($runner:ty),*) => {
        $(impl Runner for $runner {
            fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
                Self::run_burst(self, burst, host)
            }
        }

        impl Runner for &$runner {
            fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
                <$runner>::run_burst(self, burst, host)
            }
        })*
    };
}

runners!(Chain, Target);

impl Runner for Program {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Self::run_burst(self, burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        self.spec().kind.rules().meaning == Meaning::BytesKept
    }
}

impl Runner for &Program {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Program::run_burst(self, burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        Runner::keeps_bytes(*self)
    }
}

/// What becomes of packets that a runner keeps bytes of: they get as many at most, as `packet_rcv` in `net/packet/af_packet.c` puts them into
/// the socket's queue.
fn keep_bytes(runner: &(impl Runner + ?Sized), burst: &mut Burst) {
    if !runner.keeps_bytes() {
        return;
    }
    for mut frame in burst.iter_mut() {
        let kept = frame.code();
        frame.set_verdict(Meaning::BytesKept.verdict(kept));
        if kept > 0 {
            frame.truncate(kept as usize);
        }
    }
}

impl<U: Runner + ?Sized> Runner for Box<U> {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        (**self).run_burst(burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        (**self).keeps_bytes()
    }
}

/// Runs the packets of a capture through a program or a chain, and writes them where their verdicts send them.
///
/// The options' [`Origin`] says on which interface and queue packets come in. Timers that are due fire before each burst, and at the end. `observe` is
/// called after every burst with what was counted so far, and may end the run, which is no error.
///
/// # Errors
/// [`ReplayError`]. The packets before the one at fault are in the outputs, complete, whatever the error is.
pub fn replay(
    mut runner: impl Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    outputs: Outputs<'_>,
    options: ReplayOptions,
    mut observe: impl FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    replay_bursts(&mut runner, host, reader, outputs, options, &mut observe)
}

/// As [`replay`], which is compiled once.
fn replay_bursts(
    runner: &mut dyn Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    mut outputs: Outputs<'_>,
    options: ReplayOptions,
    observe: &mut dyn FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    let mut tally = Tally::default();
    let alone = options.packet_by_packet || options.cpus > 1;
    let mut burst = Burst::new(if alone { 1 } else { MAX_BURST });
    host.set_arriving(options.origin.context);
    let run = loop {
        let left = options.count.map_or(u64::MAX, |count| count - tally.packets);
        let limits = (left, options);
        match step(runner, host, reader, &mut outputs, &mut burst, &mut tally, limits) {
            Ok(true) if observe(&tally).is_break() => break Ok(()),
            Ok(true) => {}
            Ok(false) => break fire_timers(host, tally.packets),
            Err(error) => break Err(error),
        }
    };
    // The error that stopped the run takes precedence over an error from closing the output.
    let finished = finish(outputs, reader);
    (tally, run.and(finished))
}

/// One burst: read, run, write, count. False at the end.
fn step(
    runner: &mut dyn Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    outputs: &mut Outputs<'_>,
    burst: &mut Burst,
    tally: &mut Tally,
    (left, options): (u64, ReplayOptions),
) -> Result<bool, ReplayError> {
    if left == 0 || reader.fill(burst).map_err(ReplayError::Read)? == 0 {
        return Ok(false);
    }
    burst.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    let mut lengths = [0; MAX_BURST];
    for (index, length) in (0..burst.len()).zip(&mut lengths) {
        *length = burst.frame(index).len() as u64;
        let spread = options.cpus > 1;
        let cpu = if spread { queue_of(burst.frame(index).packet(), options.cpus) } else { 0 };
        let (ingress, queue) = options.origin.place(burst.frame(index).meta(), cpu as u16);
        burst.frame_mut(index).set_ingress(ingress, queue);
        if spread {
            host.set_cpu(cpu);
        }
    }
    host.arrive(burst);
    fire_timers(host, tally.packets)?;
    let ran = runner.run_burst(burst, host).map_err(|fault| {
        burst.truncate(fault.index);
        ReplayError::Fault { packet: tally.packets + fault.index as u64 + 1, fault: *fault.fault }
    });
    keep_bytes(runner, burst);
    for (frame, len) in burst.iter().zip(lengths) {
        tally.count_frame(frame, len);
    }
    if let Some(out) = &mut outputs.passed {
        out.write(burst, reader.records(), |frame| !is_dropped(frame.verdict()))
            .map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = &mut outputs.dropped {
        out.write(burst, reader.records(), |frame| is_dropped(frame.verdict()))
            .map_err(ReplayError::WriteDropped)?;
    }
    ran.map(|()| true)
}

/// Whether a packet with this verdict goes to the output of dropped packets.
fn is_dropped(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Drop | Verdict::Aborted)
}

/// Fires the timers that are due, after so many packets.
fn fire_timers(host: &mut Host, packets: u64) -> Result<(), ReplayError> {
    match host.fire_timers() {
        Ok(_) => Ok(()),
        Err(fault) => Err(ReplayError::Timer { packet: packets, fault: *fault }),
    }
}

fn finish(outputs: Outputs<'_>, reader: &CaptureReader<'_>) -> Result<(), ReplayError> {
    if let Some(out) = outputs.passed {
        out.finish(reader.records()).map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = outputs.dropped {
        out.finish(reader.records()).map_err(ReplayError::WriteDropped)?;
    }
    Ok(())
}
