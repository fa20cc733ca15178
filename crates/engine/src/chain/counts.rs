//! Counts of return values of a chain's programs.

use paceline_frame::Verdict;
use paceline_spec::graph::{COUNTS, Node};

/// Counts of the verdicts that each program of a chain returned, on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCounts {
    /// [`COUNTS`] counters for each node, and then one for packets that were aborted after [`MAX_RUNS`](paceline_spec::graph::MAX_RUNS) programs.
    pub(super) counts: Box<[u64]>,
}

impl ChainCounts {
    /// Counts for a chain of so many nodes, all 0.
    pub(super) fn new(nodes: usize) -> Self {
        Self { counts: vec![0; nodes * COUNTS + 1].into() }
    }

    /// The counts, which are all 0 afterwards.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let zeros = vec![0; self.counts.len()].into();
        Self { counts: std::mem::replace(&mut self.counts, zeros) }
    }

    /// Count of a verdict of a program; `None` for values that are no verdict.
    ///
    /// # Panics
    /// If the chain has no such node.
    #[must_use]
    pub fn of(&self, node: Node, verdict: Option<Verdict>) -> u64 {
        assert!(node.index() < self.nodes(), "node {node} of a chain of {}", self.nodes());
        self.counts[node.index() * COUNTS + verdict.map_or(COUNTS - 1, |verdict| verdict as usize)]
    }

    /// Nodes of the chain.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.counts.len() / COUNTS
    }

    /// Packets that were aborted because more than [`MAX_RUNS`](paceline_spec::graph::MAX_RUNS) programs would have run.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.counts[self.counts.len() - 1]
    }
}
