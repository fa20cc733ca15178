//! Versions of chains that change.

use crate::chain_graph::{Reason, RunConfig, Warning};
use paceline_engine::{Chain, Program};
use paceline_spec::graph::Graph;

/// One version of a chain: the graph and its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of the version: a change that names it is refused if there was another since.
    pub revision: u64,
    /// The programs' names in the chain, by node.
    pub names: Vec<String>,
    /// Their ids ([`Program::id`]), by node.
    pub ids: Vec<u32>,
    /// When each runs and after which verdicts the chain goes on, where that is what orders them.
    pub configs: Vec<RunConfig>,
    /// Graph of the programs.
    pub graph: Graph,
    /// Reasons for the order of the programs, by node.
    pub reasons: Vec<Reason>,
    /// Surprising properties of the graph.
    pub warnings: Vec<Warning>,
}

/// A layout, ready to run.
pub(crate) struct Version {
    pub(crate) layout: Layout,
    pub(crate) chain: Chain,
    /// The programs for runs one by one.
    pub(crate) programs: Vec<Program>,
}
