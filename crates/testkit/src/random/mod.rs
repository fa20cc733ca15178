//! Random programs, most of them valid, for the verifier and for comparing engines.
//!
//! The generator tracks a model of the verifier's state and chooses steps that fit it; sometimes it deliberately ignores the
//! model. A [`Candidate`] has lists of [`Step`]s, for the main program and its functions. Steps refer to each other by
//! distance, so that each can be removed to shrink a failing program.

mod change;
mod edges;
mod flow;
mod functions;
mod generator;
mod helpers;
mod inner;
mod insns;
mod joins;
mod kfuncs;
mod layout;
mod maps;
mod memory;
mod model;
mod numbers;
mod packet;
mod plan;
mod slices;
mod spills;
mod stats;
mod types;

pub use change::{changed, near};
pub use functions::cells;
pub use generator::candidate;
pub use layout::{Candidate, Function, Step, Target};
pub use maps::{is_unlike_template, jump_map, jump_maps, maps};
pub use plan::Purpose;
pub use stats::Variety;
pub use types::{btf, btf_image};
