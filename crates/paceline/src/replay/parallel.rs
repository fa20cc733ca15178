//! Running a capture on several threads: packets are dealt out by flow and written in the order of the capture.
//!
//! One thread reads windows of packets, and the workers run them. Each worker first finds the flows of its part of a window, and then,
//! when those of all parts are known, runs the packets of its own flows.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use paceline_capture::{Batch, CaptureReader, ReadError, Records};
use paceline_frame::{Burst, MAX_BURST, Verdict};
use paceline_port::queue_of;
use paceline_vm::{Fault, Host};

use super::{Outputs, ReplayError, ReplayOptions, Runner, Tally, finish, is_dropped};

/// Bytes of a window: enough that handing it over costs little, and few enough that it stays in the cache that cores share.
const WINDOW: usize = 1 << 19;
/// Windows that run or are to run, beside the one whose flows are found.
const RUNNING: usize = 3;

/// Packets that were read together.
struct Window {
    packets: Batch,
    /// Records between the packets, and the number of packets that they belong to; without outputs none is kept.
    records: Vec<(Records, usize)>,
}

/// The workers of the packets of a window, in parts.
type Workers = Arc<Vec<Vec<u16>>>;

/// Outcome of one packet.
#[derive(Clone, Copy)]
struct Outcome {
    verdict: Verdict,
    is_unknown: bool,
    /// Number of the packet's bytes after the program, where packets are written.
    len: u32,
}

/// Outcomes of a worker's packets in a window, in order.
#[derive(Default)]
struct Share {
    outcomes: Vec<Outcome>,
    /// The packets after the program, where packets are written.
    bytes: Vec<u8>,
    /// Counts, if there was no fault.
    tally: Tally,
    /// The packet that caused an invalid access, by its number in the share, and whether a timer did before it.
    fault: Option<(usize, Fault, bool)>,
}

impl Share {
    fn clear(&mut self) {
        self.outcomes.clear();
        self.bytes.clear();
        (self.tally, self.fault) = (Tally::default(), None);
    }

    fn add(&mut self, burst: &Burst, is_written: bool) {
        for frame in burst.iter() {
            self.tally.count_frame(frame, 0);
            let is_unknown = Verdict::from_code(frame.code()).is_none();
            self.outcomes.push(Outcome { verdict: frame.verdict(), is_unknown, len: frame.len() as u32 });
            if is_written {
                self.bytes.extend_from_slice(frame.packet());
            }
        }
    }
}

/// Task of a worker.
enum Task {
    /// The workers of a part of a window's packets.
    Flows { window: Arc<Window>, part: Range<usize>, found: Vec<u16> },
    /// The outcomes of its packets in a window.
    Run { window: Arc<Window>, workers: Workers, share: Share },
}

/// A worker's state.
struct Worker<U> {
    number: usize,
    /// Number of workers.
    of: usize,
    runner: U,
    host: Host,
    burst: Burst,
    ingress: Option<u32>,
    is_written: bool,
}

impl<U: Runner> Worker<U> {
    fn flows(&self, window: &Window, part: Range<usize>, found: &mut Vec<u16>) {
        found.clear();
        found.extend(part.map(|index| queue_of(window.packets.packet(index).0, self.of) as u16));
    }

    /// Runs its packets of a window, up to one that causes an invalid access.
    fn run(&mut self, window: &Window, workers: &Workers, share: &mut Share) {
        share.clear();
        self.burst.clear();
        for (index, worker) in workers.iter().flatten().enumerate() {
            if usize::from(*worker) != self.number {
                continue;
            }
            let (packet, meta) = window.packets.packet(index);
            let at = self.burst.len();
            self.burst.push(packet, *meta).expect("the reader delivers packets that fit into a frame");
            share.tally.bytes += packet.len() as u64;
            let ingress = self.ingress.unwrap_or(meta.interface.saturating_add(1));
            self.burst.frame_mut(at).set_ingress(ingress, self.number as u16);
            if self.burst.is_full() && !self.run_burst(share) {
                return;
            }
        }
        if !self.burst.is_empty() {
            self.run_burst(share);
        }
    }

    /// Runs a burst, and empties it; false after a fault.
    fn run_burst(&mut self, share: &mut Share) -> bool {
        let Self { runner, host, burst, .. } = self;
        host.arrive(burst);
        let done = share.outcomes.len();
        let ran = match host.fire_timers() {
            Err(fault) => Err((done, *fault, true)),
            Ok(_) => runner.run_burst(burst, host).map_err(|fault| (done + fault.index, *fault.fault, false)),
        };
        if let Err((at, ..)) = &ran {
            burst.truncate(at - done);
        }
        share.add(burst, self.is_written);
        burst.clear();
        share.fault = ran.err();
        share.fault.is_none()
    }
}

/// A worker's thread: where its tasks go, and where their results come back, in order.
struct Thread<'scope> {
    tasks: Sender<Task>,
    flows: Receiver<Vec<u16>>,
    shares: Receiver<Share>,
    /// Ends with the tasks, and with an error of the timers that are due then.
    handle: ScopedJoinHandle<'scope, Result<(), Box<Fault>>>,
}

impl<'scope> Thread<'scope> {
    fn start<'env, U: Runner + Send + 'env>(
        scope: &'scope Scope<'scope, 'env>,
        mut worker: Worker<U>,
    ) -> Self {
        let (tasks, received) = channel::<Task>();
        let ((found, flows), (done, shares)) = (channel(), channel());
        let work = move || {
            for task in received {
                // The window is released before its result is sent, so that its memory can be used again.
                let is_wanted = match task {
                    Task::Flows { window, part, found: mut flows } => {
                        worker.flows(&window, part, &mut flows);
                        drop(window);
                        found.send(flows).is_ok()
                    }
                    Task::Run { window, workers, mut share } => {
                        worker.run(&window, &workers, &mut share);
                        drop((window, workers));
                        done.send(share).is_ok()
                    }
                };
                if !is_wanted {
                    return Ok(());
                }
            }
            worker.host.fire_timers().map(drop)
        };
        Self { tasks, flows, shares, handle: scope.spawn(work) }
    }

    fn finish(self, packet: u64) -> Result<(), ReplayError> {
        drop(self.tasks);
        let fired = self.handle.join().expect("a runner does not panic");
        fired.map_err(|fault| ReplayError::Timer { packet, fault: *fault })
    }
}

/// The reading side.
struct Dealer<'a, R: Read> {
    reader: &'a mut CaptureReader<R>,
    left: u64,
    is_written: bool,
    error: Option<ReadError>,
    is_over: bool,
    /// Memory of windows and shares that are done.
    spare_windows: Vec<Window>,
    spare_flows: Vec<Vec<u16>>,
    spare_shares: Vec<Share>,
}

impl<R: Read> Dealer<'_, R> {
    /// Reads a window; `None` at the end.
    fn read(&mut self) -> Option<Window> {
        let spare = self.spare_windows.pop();
        let mut window = spare.unwrap_or_else(|| Window { packets: Batch::new(WINDOW), records: Vec::new() });
        window.packets.clear();
        window.records.clear();
        while !window.packets.is_full() && !self.is_over {
            match self.reader.fill_batch(&mut window.packets) {
                Ok(read) if read > 0 && self.left > 0 => self.note(&mut window, read),
                Ok(read) => {
                    window.packets.truncate(window.packets.len() - read);
                    self.is_over = true;
                }
                Err(error) => (self.error, self.is_over) = (Some(error), true),
            }
        }
        (!window.packets.is_empty()).then_some(window)
    }

    fn note(&mut self, window: &mut Window, read: usize) {
        let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(read);
        self.left -= taken as u64;
        window.packets.truncate(window.packets.len() - (read - taken));
        if self.is_written {
            window.records.push((self.reader.records().clone(), taken));
        }
    }

    /// Asks the workers for the flows of a window, each for a part.
    fn ask_flows(&mut self, threads: &[Thread<'_>], window: &Arc<Window>) {
        let (len, count) = (window.packets.len(), threads.len());
        for (number, thread) in threads.iter().enumerate() {
            let part = len * number / count..len * (number + 1) / count;
            let found = self.spare_flows.pop().unwrap_or_default();
            let task = Task::Flows { window: Arc::clone(window), part, found };
            thread.tasks.send(task).expect("the thread waits");
        }
    }

    /// Asks the workers to run a window, whose flows they have found.
    fn ask_run(&mut self, threads: &[Thread<'_>], window: &Arc<Window>) -> Workers {
        let found = threads.iter().map(|thread| thread.flows.recv().expect("the thread runs"));
        let workers: Workers = Arc::new(found.collect());
        for thread in threads {
            let share = self.spare_shares.pop().unwrap_or_default();
            let (window, workers) = (Arc::clone(window), Arc::clone(&workers));
            thread.tasks.send(Task::Run { window, workers, share }).expect("the thread waits");
        }
        workers
    }

    /// Keeps memory for later windows.
    fn keep(&mut self, window: Arc<Window>, workers: Workers, shares: Vec<Share>) {
        self.spare_windows.extend(Arc::into_inner(window));
        self.spare_flows.extend(Arc::into_inner(workers).into_iter().flatten());
        self.spare_shares.extend(shares);
    }
}

/// Runs the packets of a capture as [`replay`](super::replay()) does, on a thread for each runner with its host, beside the one that
/// reads and writes. All packets of a flow run on the same one, in order, on the CPU and queue of its number, as with
/// [`ReplayOptions::cpus`]; outputs have the order of the capture. `observe` is called after every few thousand packets.
///
/// # Errors
/// [`ReplayError`]. The packets before the one at fault are in the outputs; some behind it may have run.
///
/// # Panics
/// If there is no runner, or a runner panics.
pub fn replay_on<U: Runner + Send, R: Read, W: Write>(
    workers: Vec<(U, Host)>,
    reader: &mut CaptureReader<R>,
    mut outputs: Outputs<W>,
    options: ReplayOptions,
    mut observe: impl FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    assert!(!workers.is_empty(), "a replay without workers");
    let (of, burst_len) = (workers.len(), if options.packet_by_packet { 1 } else { MAX_BURST });
    let mut tally = Tally::default();
    let is_written = outputs.passed.is_some() || outputs.dropped.is_some();
    let mut dealer = Dealer {
        reader,
        left: options.count.unwrap_or(u64::MAX),
        is_written,
        error: None,
        is_over: false,
        spare_windows: Vec::new(),
        spare_flows: Vec::new(),
        spare_shares: Vec::new(),
    };
    let run = thread::scope(|scope| {
        let start = |(number, (runner, mut host)): (usize, (U, Host))| {
            host.set_cpu(number);
            let (burst, ingress) = (Burst::new(burst_len), options.ingress);
            Thread::start(scope, Worker { number, of, runner, host, burst, ingress, is_written })
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        let (mut waiting, mut running) = (VecDeque::new(), VecDeque::new());
        loop {
            if let Some(window) = dealer.read().map(Arc::new) {
                dealer.ask_flows(&threads, &window);
                waiting.push_back(window);
            }
            // The workers find the flows of the last one while those before run.
            let last = usize::from(!dealer.is_over);
            while waiting.len() > last
                && let Some(window) = waiting.pop_front()
            {
                let workers = dealer.ask_run(&threads, &window);
                running.push_back((window, workers));
            }
            if running.len() < RUNNING && !dealer.is_over {
                continue;
            }
            let Some((window, workers)) = running.pop_front() else { break };
            let done = threads.iter().map(|thread| thread.shares.recv().expect("the thread runs"));
            let shares: Vec<Share> = done.collect();
            merge(&window, &workers, &shares, &mut outputs, &mut tally)?;
            dealer.keep(window, workers, shares);
            // Packets that are read already are written.
            dealer.is_over |= observe(&tally).is_break();
        }
        threads.into_iter().try_for_each(|thread| thread.finish(tally.packets))
    });
    let read = dealer.error.take().map_or(Ok(()), |error| Err(ReplayError::Read(error)));
    let finished = finish(outputs, dealer.reader);
    (tally, run.and(read).and(finished))
}

/// The packets of the shares of a window in the order of the capture.
struct Merged<'a> {
    shares: &'a [Share],
    /// Next packet of each share, and where its bytes begin.
    next: Vec<(usize, usize)>,
}

impl<'a> Merged<'a> {
    /// The next packet of a worker; or the fault that it ended with.
    fn next(&mut self, worker: usize) -> Result<(Outcome, &'a [u8]), &'a (usize, Fault, bool)> {
        let (share, (number, start)) = (&self.shares[worker], &mut self.next[worker]);
        if let Some(fault) = share.fault.as_ref().filter(|(at, ..)| at == number) {
            return Err(fault);
        }
        let outcome = share.outcomes[*number];
        let end = *start + outcome.len as usize;
        // Without outputs there are no bytes.
        let packet = share.bytes.get(*start..end).unwrap_or_default();
        (*number, *start) = (*number + 1, end);
        Ok((outcome, packet))
    }
}

/// Writes and counts the packets of a window in the order of the capture.
fn merge<W: Write>(
    window: &Window,
    workers: &Workers,
    shares: &[Share],
    outputs: &mut Outputs<W>,
    tally: &mut Tally,
) -> Result<(), ReplayError> {
    if window.records.is_empty() && shares.iter().all(|share| share.fault.is_none()) {
        // The order does not matter.
        shares.iter().for_each(|share| tally.add(&share.tally));
        return Ok(());
    }
    let mut merged = Merged { shares, next: vec![(0, 0); shares.len()] };
    let (mut packets, mut fault) = (Vec::with_capacity(window.packets.len()), None);
    for (index, worker) in workers.iter().flatten().enumerate() {
        match merged.next(usize::from(*worker)) {
            Ok((outcome, packet)) => {
                tally.count(outcome.verdict, outcome.is_unknown, window.packets.packet(index).0.len() as u64);
                packets.push((outcome.verdict, packet));
            }
            Err(found) => {
                fault = Some(found);
                break;
            }
        }
    }
    let mut packets = packets.into_iter();
    for (records, len) in &window.records {
        let of_records: Vec<_> = packets.by_ref().take(*len).collect();
        if *len > 0 && of_records.is_empty() {
            // Behind the fault.
            break;
        }
        write(records, &of_records, outputs)?;
    }
    let packet = tally.packets;
    match fault.cloned() {
        None => Ok(()),
        Some((_, fault, true)) => Err(ReplayError::Timer { packet, fault }),
        Some((_, fault, false)) => Err(ReplayError::Fault { packet: packet + 1, fault }),
    }
}

fn write<W: Write>(
    records: &Records,
    packets: &[(Verdict, &[u8])],
    outputs: &mut Outputs<W>,
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
