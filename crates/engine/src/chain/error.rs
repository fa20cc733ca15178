//! Errors of making a chain.

use paceline_spec::graph::Node;

use crate::load_error::EngineError;

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
    #[error("program {node} of the chain")]
    Program {
        /// Its node.
        node: Node,
        /// Why.
        #[source]
        error: EngineError,
    },
}

#[cfg(feature = "jit")]
impl ChainError {
    /// Whether the chain or a program has no native code: they run on other engines.
    #[must_use]
    pub fn is_lack(&self) -> bool {
        use paceline_compiler::native::CompileError;
        matches!(self, Self::Program { error: EngineError::Compile(CompileError::Unsupported(_)), .. })
    }
}
