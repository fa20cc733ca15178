//! Running a capture on several threads: packets are dealt out by flow and written in the order of the capture.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use paceline_capture::{CaptureReader, ReadError, Records, Window};
use paceline_engine::{Fault, Host};
use paceline_frame::{Burst, MAX_BURST, Verdict};

use super::error::ReplayError;
use super::options::ReplayOptions;
use super::outputs::{Outputs, finish, is_dropped};
use super::runner::{Runner, keep_bytes};
use super::tally::Tally;
use crate::deal::Deal;
use crate::scenario::Origin;

/// Outcome of one packet.
#[derive(Clone, Copy)]
struct Outcome {
    verdict: Verdict,
    is_unknown: bool,
    /// Captured length in bytes.
    captured: u32,
    /// Number of the packet's bytes after the program.
    len: u32,
}

/// Cause of the end of a share before its last packet.
enum Stop {
    Fault(Fault),
    /// A timer that fired before the packet.
    Timer(Fault),
    Read(ReadError),
}

/// Outcomes of a worker's packets in a window, in order.
#[derive(Default)]
struct Share {
    outcomes: Vec<Outcome>,
    /// The packets after the program, where packets are written.
    bytes: Vec<u8>,
    /// Counts of the outcomes.
    tally: Tally,
    stop: Option<Stop>,
}

impl Share {
    fn clear(&mut self) {
        self.outcomes.clear();
        self.bytes.clear();
        (self.tally, self.stop) = (Tally::default(), None);
    }

    /// Adds the packets of a burst, which had these lengths.
    fn add(&mut self, burst: &Burst, lengths: &[u32; MAX_BURST], is_written: bool) {
        for (frame, &captured) in burst.iter().zip(lengths) {
            self.tally.count_frame(frame, u64::from(captured));
            let (verdict, len) = (frame.verdict(), frame.len() as u32);
            let is_unknown = Verdict::from_code(frame.code()).is_none();
            self.outcomes.push(Outcome { verdict, is_unknown, captured, len });
            if is_written {
                self.bytes.extend_from_slice(frame.packet());
            }
        }
    }
}

/// The windows of a run, and the memory of shares that are done.
struct Run<'r, 'c> {
    deal: Deal<&'r mut CaptureReader<'c>>,
    spare: Mutex<Vec<Share>>,
}

impl Run<'_, '_> {
    fn spare(&self) -> MutexGuard<'_, Vec<Share>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's state.
struct Worker<U> {
    number: usize,
    runner: U,
    host: Host,
    burst: Burst,
    origin: Origin,
    is_written: bool,
}

impl<U: Runner> Worker<U> {
    /// Runs its packets of all windows.
    fn run_all(&mut self, run: &Run<'_, '_>, shares: &Sender<Share>) -> Result<(), Box<Fault>> {
        for number in 0.. {
            let Some(window) = run.deal.next(number) else { break };
            let mut share = run.spare().pop().unwrap_or_default();
            self.run(&window, &mut share);
            run.deal.finish(number, window);
            if shares.send(share).is_err() {
                return Ok(());
            }
        }
        self.host.fire_timers().map(drop)
    }

    /// Runs its packets of a window, up to one that causes an invalid access.
    fn run(&mut self, window: &Window, share: &mut Share) {
        share.clear();
        let mut own = window.group(self.number);
        while share.stop.is_none() {
            self.burst.clear();
            match own.fill(window, &mut self.burst) {
                Ok(0) => return,
                Ok(_) => share.stop = self.run_burst(share).err(),
                Err(error) => share.stop = Some(Stop::Read(error)),
            }
        }
    }

    fn run_burst(&mut self, share: &mut Share) -> Result<(), Stop> {
        let Self { runner, host, burst, .. } = self;
        let mut lengths = [0; MAX_BURST];
        for (index, captured) in (0..burst.len()).zip(&mut lengths) {
            let frame = burst.frame(index);
            *captured = frame.len() as u32;
            let (ingress, queue) = self.origin.place(frame.meta(), self.number as u16);
            burst.frame_mut(index).set_ingress(ingress, queue);
        }
        host.arrive(burst);
        let ran = match host.fire_timers() {
            Err(fault) => Err((0, Stop::Timer(*fault))),
            Ok(_) => runner.run_burst(burst, host).map_err(|fault| (fault.index, Stop::Fault(*fault.fault))),
        };
        let ran = ran.map_err(|(done, stop)| {
            burst.truncate(done);
            stop
        });
        keep_bytes(runner, burst);
        share.add(burst, &lengths, self.is_written);
        ran
    }
}

/// A worker's thread, and where its shares come from, in order.
struct Thread<'scope> {
    shares: Receiver<Share>,
    /// Ends with the windows, and with an error of the timers that are due then.
    handle: ScopedJoinHandle<'scope, Result<(), Box<Fault>>>,
}

impl<'scope> Thread<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        run: &'env Run<'_, '_>,
        mut worker: Worker<Box<dyn Runner + Send + 'env>>,
    ) -> Self {
        let (done, shares) = channel();
        let handle = scope.spawn(move || {
            let ends = Ends { run, is_done: false };
            let ran = worker.run_all(run, &done);
            ends.done();
            ran
        });
        Self { shares, handle }
    }

    fn finish(self, packet: u64) -> Result<(), ReplayError> {
        let fired = self.handle.join().expect("a runner does not panic");
        fired.map_err(|fault| ReplayError::Timer { packet, fault: *fault })
    }
}

/// Ends the waiting of all other threads when this one ends before its time.
struct Ends<'e, 'r, 'c> {
    run: &'e Run<'r, 'c>,
    is_done: bool,
}

impl Ends<'_, '_, '_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Ends<'_, '_, '_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.run.deal.abort();
        }
    }
}

/// Runs the packets of a capture as [`replay`](super::replay()) does, on a thread for each runner with its host, beside the one that
/// writes. All packets of a flow run on the same one, in order, on the CPU and queue of its number, as with
/// [`ReplayOptions::cpus`]; outputs have the order of the capture. `observe` is called after every few thousand packets.
///
/// # Errors
/// [`ReplayError`]. The packets before the one at fault are in the outputs; some behind it may have run.
///
/// # Panics
/// If there is no runner, or a runner panics.
pub fn replay_on<U: Runner + Send>(
    workers: Vec<(U, Host)>,
    reader: &mut CaptureReader<'_>,
    outputs: Outputs<'_>,
    options: ReplayOptions,
    mut observe: impl FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    let boxed = |(runner, host)| (Box::new(runner) as Box<dyn Runner + Send + '_>, host);
    replay_boxed(workers.into_iter().map(boxed).collect(), reader, outputs, options, &mut observe)
}

/// As [`replay_on`], which is compiled once.
fn replay_boxed<'env>(
    workers: Vec<(Box<dyn Runner + Send + 'env>, Host)>,
    reader: &mut CaptureReader<'_>,
    mut outputs: Outputs<'_>,
    options: ReplayOptions,
    observe: &mut dyn FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    assert!(!workers.is_empty(), "a replay without workers");
    let (of, burst_len) = (workers.len(), if options.packet_by_packet { 1 } else { MAX_BURST });
    let mut tally = Tally::default();
    let is_written = outputs.passed.is_some() || outputs.dropped.is_some();
    let most = options.count.unwrap_or(u64::MAX);
    // This thread finishes windows too.
    let run = Run { deal: Deal::new(&mut *reader, most, of, of + 1, is_written), spare: Mutex::default() };
    let ran = thread::scope(|scope| {
        let start = |(number, (runner, mut host)): (usize, (Box<dyn Runner + Send + 'env>, Host))| {
            host.set_cpu(number);
            host.set_arriving(options.origin.context);
            let (burst, origin) = (Burst::new(burst_len), options.origin);
            Thread::start(scope, &run, Worker { number, runner, host, burst, origin, is_written })
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        let ends = Ends { run: &run, is_done: false };
        for number in 0.. {
            let Some(window) = run.deal.await_window(number) else { break };
            let done = threads.iter().map(|thread| thread.shares.recv().expect("the thread runs"));
            let mut shares: Vec<Share> = done.collect();
            merge(&window, &mut shares, &mut outputs, &mut tally)?;
            run.deal.finish(number, window);
            run.spare().extend(shares);
            // Packets that are read already are written.
            if observe(&tally).is_break() {
                run.deal.stop();
            }
        }
        ends.done();
        threads.into_iter().try_for_each(|thread| thread.finish(tally.packets))
    });
    let read = run.deal.take_error().map_or(Ok(()), |error| Err(ReplayError::Read(error)));
    drop(run);
    let finished = finish(outputs, reader);
    (tally, ran.and(read).and(finished))
}

/// The next packet of a share, and where its bytes begin.
type Cursor = (usize, usize);

impl Share {
    /// The outcome and bytes of the next packet; `None` where the share ends early.
    fn next(&self, (number, start): &mut Cursor) -> Option<(Outcome, &[u8])> {
        let outcome = *self.outcomes.get(*number)?;
        let end = *start + outcome.len as usize;
        // Without outputs there are no bytes.
        let packet = self.bytes.get(*start..end).unwrap_or_default();
        (*number, *start) = (*number + 1, end);
        Some((outcome, packet))
    }
}

/// Writes and counts the packets of a window in the order of the capture.
fn merge(
    window: &Window,
    shares: &mut [Share],
    outputs: &mut Outputs<'_>,
    tally: &mut Tally,
) -> Result<(), ReplayError> {
    if window.records().is_none() && shares.iter().all(|share| share.stop.is_none()) {
        // The order does not matter.
        shares.iter().for_each(|share| tally.add(&share.tally));
        return Ok(());
    }
    let mut cursors = vec![Cursor::default(); shares.len()];
    let (mut packets, mut stopped) = (Vec::with_capacity(window.order().len()), None);
    for worker in window.order().iter().copied().map(usize::from) {
        let Some((outcome, packet)) = shares[worker].next(&mut cursors[worker]) else {
            stopped = Some(worker);
            break;
        };
        tally.count(outcome.verdict, outcome.is_unknown, u64::from(outcome.captured));
        packets.push((outcome.verdict, packet));
    }
    if let Some(records) = window.records() {
        write(records, &packets, outputs)?;
    }
    let packet = tally.packets;
    match stopped.and_then(|worker| shares[worker].stop.take()) {
        None => Ok(()),
        Some(Stop::Timer(fault)) => Err(ReplayError::Timer { packet, fault }),
        Some(Stop::Fault(fault)) => Err(ReplayError::Fault { packet: packet + 1, fault }),
        Some(Stop::Read(error)) => Err(ReplayError::Read(error)),
    }
}

fn write(
    records: &Records,
    packets: &[(Verdict, &[u8])],
    outputs: &mut Outputs<'_>,
) -> Result<(), ReplayError> {
    let selected = |dropped: bool| {
        packets.iter().map(move |(verdict, packet)| (is_dropped(*verdict) == dropped).then_some(*packet))
    };
    if let Some(out) = &mut outputs.passed {
        out.write_selected(selected(false), true, records).map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = &mut outputs.dropped {
        out.write_selected(selected(true), true, records).map_err(ReplayError::WriteDropped)?;
    }
    Ok(())
}
