//! A worker of a chain: runs it on one thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline_chain::{Next, Node};
use paceline_frame::Burst;
use paceline_vm::{BurstFault, ByKey, Caller, Calls, ChainCounts, Host};

use super::status::ProgramStatus;
use super::{Shared, lock};
use crate::step::{Step, step};
use crate::version::{Layout, Version};

/// Number of bursts between two updates of the shared counts.
const TELL_AFTER: u32 = 16;

/// Statistics that a worker collects.
enum Mode {
    /// Nothing.
    Plain,
    /// Counts of return values.
    Counted { counts: ChainCounts, bursts: u32 },
    /// That, and how long bursts take through a chain of one program.
    TimedBursts { counts: ChainCounts, time: Duration, packets: u64, bursts: u32 },
    /// That, and how long each of several programs takes.
    Timed { programs: Vec<ProgramStatus>, overruns: u64, bursts: u32, clock: Duration },
}

/// Runs a [`LiveChain`](super::LiveChain) on one thread. What replaced it is run from the next burst on; a worker that
/// has nothing to run keeps the version that it ran last.
pub struct ChainWorker {
    shared: Arc<Shared>,
    caller: Caller<ByKey>,
    /// The version that ran the last burst.
    version: Arc<Version>,
    mode: Mode,
}

impl ChainWorker {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let version = Arc::clone(&lock(&shared.current));
        Self { caller: shared.pipeline.site().caller(), shared, version, mode: Mode::Plain }
    }

    /// From now on counts what programs return, for [`LiveChain::status`](super::LiveChain::status).
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.tell();
        self.mode = Mode::Counted { counts: self.version.chain.counts(), bursts: 0 };
        self
    }

    /// From now on counts, and measures each program. Through a chain of one program bursts go as ever, and a clock is read before
    /// and after each. Through others packets go one by one, program by program, and the clock is read twice for each run: that is
    /// slower, what such a reading mostly takes is taken off the times, and what it takes to enter a program for one packet is in
    /// them.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.tell();
        self.mode = timed(&self.version, clock());
        self
    }

    /// Runs the packets of a burst through the chain as it is now, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made a program do what it may not.
    pub fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let mut calls = self.caller.enter(host);
        let current = current(&calls, &self.shared);
        let other = current.filter(|current| !Arc::ptr_eq(current, &self.version)).map(Arc::clone);
        if current.is_none() || matches!(self.mode, Mode::Plain) {
            // A program that replaced the chain on its interface runs as well.
            other.into_iter().for_each(|version| self.version = version);
            return calls.run_burst(u64::from(self.shared.ifindex), burst);
        }
        drop(calls);
        other.into_iter().for_each(|version| self.follow(version));
        let Version { chain, programs: all, layout } = &*self.version;
        let due = match &mut self.mode {
            Mode::Plain => false,
            Mode::Counted { counts, bursts } => {
                chain.run_burst_counted(burst, host, counts)?;
                count(bursts)
            }
            Mode::TimedBursts { counts, time, packets, bursts } => {
                let start = Instant::now();
                chain.run_burst_counted(burst, host, counts)?;
                *time += start.elapsed();
                *packets += burst.len() as u64;
                count(bursts)
            }
            Mode::Timed { programs, overruns, bursts, clock } => {
                for (index, mut frame) in burst.iter_mut().enumerate() {
                    let mut last = None;
                    let note = |step: Step, _: &_| {
                        last = Some(step.next);
                        if let Some(program) = programs.get_mut(step.node.index()) {
                            program.count(step.code);
                            program.time += step.time.saturating_sub(*clock);
                            program.timed += 1;
                        }
                    };
                    step((all, &layout.graph), &mut frame, host, |_, _| {}, note)
                        .map_err(|fault| BurstFault { index, fault })?;
                    *overruns += u64::from(matches!(last, Some(Next::Program(_))));
                }
                count(bursts)
            }
        };
        if due {
            self.tell();
        }
        Ok(())
    }

    /// Goes over to the chain as it is now, as the next burst would.
    pub fn refresh(&mut self, host: &mut Host) {
        let current = current(&self.caller.enter(host), &self.shared).map(Arc::clone);
        let other = current.filter(|current| !Arc::ptr_eq(current, &self.version));
        other.into_iter().for_each(|version| self.follow(version));
    }

    /// The version that ran the last burst, or runs the first.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.version.layout
    }

    /// The programs of the chain that ran the last burst, by node, and their graph, for [`trace`](crate::trace).
    #[must_use]
    pub fn parts(&self) -> (&[paceline_vm::Program], &paceline_chain::Graph) {
        (&self.version.programs, &self.version.layout.graph)
    }

    /// Goes over to another version.
    #[cold]
    fn follow(&mut self, version: Arc<Version>) {
        self.tell();
        self.version = version;
        self.mode = match self.mode {
            Mode::Plain => Mode::Plain,
            Mode::Counted { .. } => Mode::Counted { counts: self.version.chain.counts(), bursts: 0 },
            Mode::TimedBursts { .. } => timed(&self.version, clock()),
            Mode::Timed { clock, .. } => timed(&self.version, clock),
        };
    }

    /// Adds the counts to the totals, and resets them.
    fn tell(&mut self) {
        let ids = &self.version.layout.ids;
        match &mut self.mode {
            Mode::Plain => {}
            Mode::Counted { counts, bursts } => {
                let told = std::mem::replace(counts, self.version.chain.counts());
                *bursts = 0;
                let mut totals = lock(&self.shared.totals);
                for (node, id) in self.version.layout.graph.iter().map(|(node, _)| node).zip(ids) {
                    totals.add(*id, &ProgramStatus::of_node(&told, node));
                }
                totals.add_overruns(told.overruns());
            }
            Mode::TimedBursts { counts, time, packets, bursts } => {
                let told = std::mem::replace(counts, self.version.chain.counts());
                let (time, timed) = (std::mem::take(time), std::mem::take(packets));
                *bursts = 0;
                let mut totals = lock(&self.shared.totals);
                if let Some(id) = ids.first() {
                    totals.add(
                        *id,
                        &ProgramStatus { time, timed, ..ProgramStatus::of_node(&told, Node::ENTRY) },
                    );
                }
                totals.add_overruns(told.overruns());
            }
            Mode::Timed { programs, overruns, bursts, .. } => {
                *bursts = 0;
                let mut totals = lock(&self.shared.totals);
                for (program, id) in programs.iter_mut().zip(ids) {
                    totals.add(*id, &std::mem::take(program));
                }
                totals.add_overruns(std::mem::take(overruns));
            }
        }
    }
}

impl Drop for ChainWorker {
    fn drop(&mut self) {
        self.tell();
    }
}

/// The version that is called.
fn current<'a>(calls: &'a Calls<'_, ByKey>, shared: &Shared) -> Option<&'a Arc<Version>> {
    calls.target(u64::from(shared.ifindex))?.data()
}

fn timed(version: &Version, clock: Duration) -> Mode {
    match version.programs.len() {
        1 => {
            Mode::TimedBursts { counts: version.chain.counts(), time: Duration::ZERO, packets: 0, bursts: 0 }
        }
        nodes => {
            Mode::Timed { programs: vec![ProgramStatus::default(); nodes], overruns: 0, bursts: 0, clock }
        }
    }
}

/// Counts a burst; whether it is time to tell.
fn count(bursts: &mut u32) -> bool {
    *bursts += 1;
    *bursts >= TELL_AFTER
}

/// The median time of a clock reading.
fn clock() -> Duration {
    let mut readings: Vec<Duration> = (0..255).map(|_| Instant::now().elapsed()).collect();
    readings.sort_unstable();
    readings.get(readings.len() / 2).copied().unwrap_or_default()
}
