//! The graph of a chain: which program runs after which, by verdict; descriptions that it is made from, and drawings of it.
//!
//! A [`Graph`] names programs by index. It comes from [`Edges`], from a [`Sequence`], from the priorities and actions of xdp-tools
//! ([`Plan`]), from a tail call map ([`CallMap`]) or from a file ([`ChainFile`], which [`ChainSource`] loads with all that it names). [`Chain::load`](crate::Chain::load) makes it
//! run; a [`LiveChain`](crate::LiveChain) changes under traffic.

mod actions;
mod call_map;
mod draw;
#[cfg(feature = "json")]
mod file;
mod plan;
mod priority;
mod run_config;
mod sequence;

pub use actions::Actions;
pub use call_map::{CallMap, CallMapError, Calls};
pub use draw::{Drawing, EdgePackets, dot, svg};
#[cfg(feature = "json")]
pub use file::{
    ChainFile, FileError, FileMap, FileObject, FileOrder, FilePlace, FilePort, FileProblem, FileProgram,
    Located, MapSource, ObjectSource,
};
pub use paceline_spec::graph::{Edges, Graph, GraphError, MAX_RUNS, Meaning, Next, Node};
pub use plan::{Lead, Plan, PlanError, Reason, Warning};
pub use priority::{Entrant, Tie};
pub use run_config::{DEFAULT_PRIORITY, RunConfig, RunConfigError};
pub use sequence::{Place, Placement, Sequence, SequenceError};

#[cfg(feature = "json")]
pub use crate::chain_file::{
    ChainFileCause, ChainFileError, ChainLoadOptions, ChainPart, ChainSource, LoadedChain, OpenedChain,
};
