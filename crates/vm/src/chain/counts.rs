//! Counts of what the programs of a chain return.

use paceline_frame::Verdict;
use paceline_graph::{COUNTS, Node};

/// How often each program of a chain returned which verdict, on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCounts {
    /// [`COUNTS`] for each node, and then the packets that were aborted after [`MAX_RUNS`](paceline_graph::MAX_RUNS) programs.
    pub(super) counts: Box<[u64]>,
}

impl ChainCounts {
    /// Counts for a chain of so many nodes, all 0.
    pub(super) fn new(nodes: usize) -> Self {
        Self { counts: vec![0; nodes * COUNTS + 1].into() }
    }

    /// How often a program returned a verdict; `None` for values that are none.
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

    /// Packets that were aborted because more than [`MAX_RUNS`](paceline_graph::MAX_RUNS) programs would have run.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }
}
