//! Running a capture on several threads: packets are dealt out by flow and written in the order of the capture.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use paceline_capture::{CaptureReader, ReadError, Records};
use paceline_frame::{Burst, FrameRef, MAX_BURST};
use paceline_port::queue_of;
use paceline_vm::{Fault, Host};

use super::{Outputs, ReplayError, ReplayOptions, Runner, Tally, finish, is_dropped};

/// Bursts that are read before they are dealt out: enough that handing over costs little.
const BURSTS: usize = 32;
/// Windows at a time: one is read while another runs.
const WINDOWS: usize = 2;

/// Packets of one worker, in order.
struct Share {
    bursts: Vec<Burst>,
    /// Number of bursts with packets.
    used: usize,
    /// Maximum number of packets of a burst.
    burst_len: usize,
    /// Bytes of the packets as they were dealt out, and counts after the run.
    bytes: u64,
    tally: Tally,
    /// The packet that caused an invalid access, by its number in the share, and whether a timer did before it.
    fault: Option<(usize, Fault, bool)>,
}

impl Share {
    fn new(burst_len: usize) -> Self {
        Self { bursts: Vec::new(), used: 0, burst_len, bytes: 0, tally: Tally::default(), fault: None }
    }

    fn clear(&mut self) {
        self.bursts[..self.used].iter_mut().for_each(Burst::clear);
        (self.used, self.fault) = (0, None);
        (self.bytes, self.tally) = (0, Tally::default());
    }

    fn push(&mut self, frame: FrameRef<'_>, ingress: u32, queue: u16) {
        if self.used == 0 || self.bursts[self.used - 1].is_full() {
            if self.bursts.len() == self.used {
                self.bursts.push(Burst::new(self.burst_len));
            }
            self.used += 1;
        }
        let burst = &mut self.bursts[self.used - 1];
        let index = burst.len();
        // The packet comes from a burst, and fits into another.
        if burst.push(frame.packet(), *frame.meta()).is_ok() {
            self.bytes += frame.len() as u64;
            burst.frame_mut(index).set_ingress(ingress, queue);
        }
    }

    /// Runs the packets, up to one that causes an invalid access.
    fn run(&mut self, runner: &mut impl Runner, host: &mut Host) {
        let mut done = 0;
        for burst in &mut self.bursts[..self.used] {
            host.arrive(burst);
            if let Err(fault) = host.fire_timers() {
                self.fault = Some((done, *fault, true));
                return;
            }
            if let Err(fault) = runner.run_burst(burst, host) {
                self.fault = Some((done + fault.index, *fault.fault, false));
                return;
            }
            done += burst.len();
            burst.iter().for_each(|frame| self.tally.count_frame(frame, 0));
        }
        self.tally.bytes = self.bytes;
    }

    fn frame(&self, number: usize) -> FrameRef<'_> {
        self.bursts[number / self.burst_len].frame(number % self.burst_len)
    }
}

/// Bursts that were read together.
struct Window {
    records: Vec<Records>,
    /// For each packet its worker, and its length before the program.
    packets: Vec<(u16, u32)>,
    /// Number of packets of each burst.
    lens: Vec<usize>,
}

/// What the reading side needs.
struct Dealer<'a, R: Read> {
    reader: &'a mut CaptureReader<R>,
    burst: Burst,
    options: ReplayOptions,
    left: u64,
    /// Whether packets are written, so that the records of the capture are kept.
    is_written: bool,
    error: Option<ReadError>,
    is_over: bool,
}

impl<R: Read> Dealer<'_, R> {
    /// Reads a window and deals it out; `None` at the end.
    fn deal(&mut self, shares: &mut [Share]) -> Option<Window> {
        let mut window = Window { records: Vec::new(), packets: Vec::new(), lens: Vec::new() };
        shares.iter_mut().for_each(Share::clear);
        while window.lens.len() < BURSTS && !self.is_over {
            match self.reader.fill(&mut self.burst) {
                Ok(read) if read > 0 && self.left > 0 => self.deal_burst(&mut window, shares),
                Ok(_) => self.is_over = true,
                Err(error) => (self.error, self.is_over) = (Some(error), true),
            }
        }
        (!window.lens.is_empty()).then_some(window)
    }

    fn deal_burst(&mut self, window: &mut Window, shares: &mut [Share]) {
        self.burst.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= self.burst.len() as u64;
        for frame in self.burst.iter() {
            let ingress = self.options.ingress.unwrap_or(frame.meta().interface.saturating_add(1));
            let worker = queue_of(frame.packet(), shares.len());
            window.packets.push((worker as u16, frame.len() as u32));
            shares[worker].push(frame, ingress, worker as u16);
        }
        if self.is_written {
            window.records.push(self.reader.records().clone());
        }
        window.lens.push(self.burst.len());
    }
}

/// A worker's thread: where its packets go, and where they come back.
struct Thread<'scope> {
    tasks: Sender<Share>,
    done: Receiver<Share>,
    /// Ends with the tasks, and with an error of the timers that are due then.
    handle: ScopedJoinHandle<'scope, Result<(), Box<Fault>>>,
}

impl<'scope> Thread<'scope> {
    fn start<'env, U: Runner + Send + 'env>(
        scope: &'scope Scope<'scope, 'env>,
        mut runner: U,
        mut host: Host,
    ) -> Self {
        let ((tasks, shares), (finished, done)) = (channel::<Share>(), channel());
        let work = move || {
            for mut share in shares {
                share.run(&mut runner, &mut host);
                if finished.send(share).is_err() {
                    return Ok(());
                }
            }
            host.fire_timers().map(drop)
        };
        Self { tasks, done, handle: scope.spawn(work) }
    }

    fn finish(self, packet: u64) -> Result<(), ReplayError> {
        drop(self.tasks);
        let fired = self.handle.join().expect("a runner does not panic");
        fired.map_err(|fault| ReplayError::Timer { packet, fault: *fault })
    }
}

/// Runs the packets of a capture as [`replay`](super::replay()) does, on a thread for each runner with its host. All packets of a flow run on the same one,
/// in order, on the CPU and queue of its number, as with [`ReplayOptions::cpus`]; outputs have the order of the capture. `observe` is
/// called after every few bursts.
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
    let (count, burst_len) = (workers.len(), if options.packet_by_packet { 1 } else { MAX_BURST });
    let mut tally = Tally::default();
    let left = options.count.unwrap_or(u64::MAX);
    let is_written = outputs.passed.is_some() || outputs.dropped.is_some();
    let burst = Burst::new(MAX_BURST);
    let mut dealer = Dealer { reader, burst, options, left, is_written, error: None, is_over: false };
    let run = thread::scope(|scope| {
        let start = |(number, (runner, mut host)): (usize, (U, Host))| {
            host.set_cpu(number);
            Thread::start(scope, runner, host)
        };
        let threads: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        let shares = || (0..count).map(|_| Share::new(burst_len)).collect();
        let mut spare: Vec<Vec<Share>> = (0..WINDOWS).map(|_| shares()).collect();
        let mut running = VecDeque::new();
        loop {
            while let Some(mut shares) = spare.pop() {
                let Some(window) = dealer.deal(&mut shares) else { break };
                for (thread, share) in threads.iter().zip(shares) {
                    thread.tasks.send(share).expect("the thread waits");
                }
                running.push_back(window);
            }
            let Some(window) = running.pop_front() else { break };
            let done = threads.iter().map(|thread| thread.done.recv().expect("the thread runs"));
            let shares: Vec<Share> = done.collect();
            merge(&window, &shares, &mut outputs, &mut tally)?;
            spare.push(shares);
            // What was read already is written.
            dealer.is_over |= observe(&tally).is_break();
        }
        threads.into_iter().try_for_each(|thread| thread.finish(tally.packets))
    });
    let read = dealer.error.take().map_or(Ok(()), |error| Err(ReplayError::Read(error)));
    let finished = finish(outputs, dealer.reader);
    (tally, run.and(read).and(finished))
}

/// Writes and counts the packets of a window in the order of the capture.
fn merge<W: Write>(
    window: &Window,
    shares: &[Share],
    outputs: &mut Outputs<W>,
    tally: &mut Tally,
) -> Result<(), ReplayError> {
    if window.records.is_empty() && shares.iter().all(|share| share.fault.is_none()) {
        // The order does not matter.
        shares.iter().for_each(|share| tally.add(&share.tally));
        return Ok(());
    }
    let mut next = vec![0_usize; shares.len()];
    let mut packets = window.packets.iter();
    for (index, &len) in window.lens.iter().enumerate() {
        let (mut frames, mut fault) = (Vec::with_capacity(len), None);
        for &(worker, before) in packets.by_ref().take(len) {
            let share = &shares[usize::from(worker)];
            let number = next[usize::from(worker)];
            if let Some((_, found, is_timer)) = share.fault.as_ref().filter(|(at, ..)| *at == number) {
                fault = Some((found.clone(), *is_timer));
                break;
            }
            next[usize::from(worker)] += 1;
            let frame = share.frame(number);
            tally.count_frame(frame, u64::from(before));
            frames.push(frame);
        }
        if let Some(records) = window.records.get(index) {
            write(records, &frames, outputs)?;
        }
        if let Some((fault, is_timer)) = fault {
            let packet = tally.packets;
            return Err(match is_timer {
                true => ReplayError::Timer { packet, fault },
                false => ReplayError::Fault { packet: packet + 1, fault },
            });
        }
    }
    Ok(())
}

fn write<W: Write>(
    records: &Records,
    frames: &[FrameRef<'_>],
    outputs: &mut Outputs<W>,
) -> Result<(), ReplayError> {
    if let Some(out) = &mut outputs.passed {
        let select = |frame: FrameRef<'_>| !is_dropped(frame.verdict());
        out.write_frames(frames.iter().copied(), true, records, select).map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = &mut outputs.dropped {
        let select = |frame: FrameRef<'_>| is_dropped(frame.verdict());
        out.write_frames(frames.iter().copied(), true, records, select).map_err(ReplayError::WriteDropped)?;
    }
    Ok(())
}
