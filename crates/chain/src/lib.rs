//! Chains: which program runs after which, by verdict (seed 001).
//!
//! A [`Graph`] says it: its nodes are programs, known by their index alone, and an edge leads from a program and a
//! verdict to the next program or to the end. There are four ways to say the same:
//!
//! | way | here |
//! |---|---|
//! | the chain-call map of the seed | [`CallMap`] |
//! | run priorities and chain call actions, as libxdp's dispatcher goes by | [`RunConfig`], [`Plan::by_priority`] |
//! | relative order, as the kernel's hooks for several programs have it | [`Sequence`], [`Plan::in_sequence`] |
//! | a file | [`ChainFile`] |
//!
//! What runs graphs is elsewhere.
#![forbid(unsafe_code)]

mod actions;
mod call_map;
mod draw;
mod file;
mod plan;
mod run_config;
mod sequence;

pub use actions::Actions;
pub use call_map::{CallMap, CallMapError, Calls};
pub use draw::{Drawing, dot, svg};
pub use file::{
    ChainFile, FileError, FileMap, FileObject, FileOrder, FilePlace, FilePort, FileProblem, FileProgram,
    Located, MapSource, ObjectSource,
};
pub use paceline_graph::{Edges, Graph, GraphError, MAX_RUNS, Meaning, Next, Node};
pub use plan::{Entrant, Lead, Plan, PlanError, Reason, Tie, Warning};
pub use run_config::{DEFAULT_PRIORITY, RunConfig, RunConfigError};
pub use sequence::{Place, Placement, Sequence, SequenceError};
