//! Errors of making a chain.

use paceline_graph::Node;

use crate::load_error::LoadError;

/// Programs and a graph are no chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The graph has another number of nodes than there are programs.
    #[error("the graph has {nodes} nodes, and there are {programs} programs")]
    NodeCount {
        /// Nodes of the graph.
        nodes: usize,
        /// Programs given.
        programs: usize,
    },
    /// A program cannot be run.
    #[error("program {node} of the chain: {error}")]
    Program {
        /// Its node.
        node: Node,
        /// Why.
        #[source]
        error: LoadError,
    },
}
