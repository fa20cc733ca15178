//! Chains: the order of programs, by verdict.
//!
//! A chain is a [`Graph`]: its nodes are programs, identified by index only, and an edge leads from a program and a verdict to the
//! next program or to the end. Four descriptions can be converted to graphs:
//!
//! | description | here |
//! |---|---|
//! | the chain-call map of the seed | [`CallMap`] |
//! | run priorities and chain call actions, as used by libxdp's dispatcher | [`RunConfig`], [`Plan::by_priority`] |
//! | relative order, as used by the kernel's hooks for several programs | [`Sequence`], [`Plan::in_sequence`] |
//! | a file | [`ChainFile`] |
//!
//! Other crates execute graphs.
#![forbid(unsafe_code)]

mod actions;
mod call_map;
mod draw;
mod file;
mod plan;
mod priority;
mod run_config;
mod sequence;

pub use actions::Actions;
pub use call_map::{CallMap, CallMapError, Calls};
pub use draw::{Drawing, EdgePackets, dot, svg};
pub use file::{
    ChainFile, FileError, FileMap, FileObject, FileOrder, FilePlace, FilePort, FileProblem, FileProgram,
    Located, MapSource, ObjectSource,
};
pub use paceline_graph::{Edges, Graph, GraphError, MAX_RUNS, Meaning, Next, Node};
pub use plan::{Lead, Plan, PlanError, Reason, Warning};
pub use priority::{Entrant, Tie};
pub use run_config::{DEFAULT_PRIORITY, RunConfig, RunConfigError};
pub use sequence::{Place, Placement, Sequence, SequenceError};
