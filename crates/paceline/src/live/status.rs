//! Counts of a chain.

use std::collections::BTreeMap;

use paceline_engine::ChainCounts;
use paceline_frame::Verdict;
use paceline_spec::graph::Node;

use crate::version::Layout;

/// Counts of a program of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramStatus {
    /// Count of each returned verdict, in the order of [`Verdict::ALL`].
    pub verdicts: [u64; Verdict::ALL.len()],
    /// Count of returned values that are no verdict.
    pub others: u64,
}

impl ProgramStatus {
    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.verdicts.iter().sum::<u64>() + self.others
    }

    fn add(&mut self, other: &Self) {
        self.verdicts.iter_mut().zip(other.verdicts).for_each(|(sum, count)| *sum += count);
        self.others += other.others;
    }

    pub(super) fn of_node(counts: &ChainCounts, node: Node) -> Self {
        let verdicts = Verdict::ALL.map(|verdict| counts.of(node, Some(verdict)));
        Self { verdicts, others: counts.of(node, None) }
    }
}

/// Counts and current version of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The current version.
    pub layout: Layout,
    /// Counts of each program since it was added, by node. An edge was taken as often as its verdict was returned.
    pub programs: Vec<ProgramStatus>,
    /// Packets that were aborted because more than [`MAX_RUNS`](crate::chain_graph::MAX_RUNS) programs would have run.
    pub overruns: u64,
}

/// Counts of all workers, by the ids of programs that are in the chain or in an unpublished change.
#[derive(Default)]
pub(super) struct Totals {
    programs: BTreeMap<u32, ProgramStatus>,
    overruns: u64,
}

impl Totals {
    /// Lets programs be counted. Before workers may run them.
    pub(super) fn admit(&mut self, ids: &[u32]) {
        for id in ids {
            self.programs.entry(*id).or_default();
        }
    }

    /// Forgets all programs but these. What workers tell of others later is not kept.
    pub(super) fn keep(&mut self, ids: &[u32]) {
        self.programs.retain(|id, _| ids.contains(id));
    }

    pub(super) fn add(&mut self, id: u32, counted: &ProgramStatus) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.add(counted);
        }
    }

    pub(super) fn add_overruns(&mut self, overruns: u64) {
        self.overruns += overruns;
    }

    pub(super) fn status(&self, layout: &Layout) -> Status {
        let of = |id| self.programs.get(id).cloned().unwrap_or_default();
        Status {
            layout: layout.clone(),
            programs: layout.ids.iter().map(of).collect(),
            overruns: self.overruns,
        }
    }
}
