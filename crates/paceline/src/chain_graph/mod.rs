//! Descriptions that graphs of chains are made from, and drawings of graphs.

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
