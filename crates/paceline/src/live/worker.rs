//! A worker of a chain: runs it on one thread.

use std::sync::Arc;

use paceline_engine::{BurstFault, ByKey, Caller, Calls, ChainCounts, Host};
use paceline_frame::Burst;

use super::change::ChangeError;
use super::shared::{Shared, lock};
use super::status::ProgramStatus;
use crate::version::{Layout, Version};

/// Number of bursts between two updates of the shared counts.
const TELL_AFTER: u32 = 16;

/// Statistics that a worker collects.
enum Mode {
    /// Nothing.
    Plain,
    /// Counts of return values.
    Counted { counts: ChainCounts, bursts: u32 },
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

impl std::fmt::Debug for ChainWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainWorker").finish_non_exhaustive()
    }
}

impl ChainWorker {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let version = Arc::clone(&lock(&shared.current));
        Self { caller: shared.pipeline.site().caller(), shared, version, mode: Mode::Plain }
    }

    /// From now on counts what programs return, for [`LiveChain::status`](super::LiveChain::status). Code that counts is compiled here for
    /// the chain as it is, and with each change from now on.
    ///
    /// # Errors
    /// [`ChangeError::Chain`]: the code is not compiled.
    pub fn counted(mut self) -> Result<Self, ChangeError> {
        self.tell();
        self.shared.count()?;
        self.mode = Mode::Counted { counts: self.version.chain.counts()?, bursts: 0 };
        Ok(self)
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
        let due = match &mut self.mode {
            Mode::Plain => false,
            Mode::Counted { counts, bursts } => {
                self.version.chain.run_burst_counted(burst, host, counts)?;
                *bursts += 1;
                *bursts >= TELL_AFTER
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
    pub fn parts(&self) -> (&[paceline_engine::Program], &crate::chain_graph::Graph) {
        (&self.version.programs, &self.version.layout.graph)
    }

    /// Goes over to another version.
    #[cold]
    fn follow(&mut self, version: Arc<Version>) {
        let mode = match self.mode {
            Mode::Plain => Mode::Plain,
            Mode::Counted { .. } => match version.chain.counts() {
                Ok(counts) => Mode::Counted { counts, bursts: 0 },
                // Its code was compiled before it was published: as if it were not published.
                Err(_) => return,
            },
        };
        self.tell();
        (self.version, self.mode) = (version, mode);
    }

    /// Adds the counts to the totals, and resets them.
    fn tell(&mut self) {
        let ids = &self.version.layout.ids;
        match &mut self.mode {
            Mode::Plain => {}
            Mode::Counted { counts, bursts } => {
                let told = counts.take();
                *bursts = 0;
                let mut totals = lock(&self.shared.totals);
                for (node, id) in self.version.layout.graph.iter().map(|(node, _)| node).zip(ids) {
                    totals.add(*id, &ProgramStatus::of_node(&told, node));
                }
                totals.add_overruns(told.overruns());
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
