//! Random programs, most of them valid, for the verifier and for comparing engines.
//!
//! The generator keeps a model of what a verifier would know and chooses steps that fit it; now and then, on purpose, it
//! does not look. A [`Candidate`] is lists of [`Step`]s, the main program's and its functions'. Steps refer to each other
//! by distance, so that any may be taken out, which is how a program that shows something is shrunk.

mod change;
mod flow;
mod functions;
mod generator;
mod helpers;
mod inner;
mod joins;
mod kfuncs;
mod layout;
mod maps;
mod memory;
mod model;
mod numbers;
mod packet;
mod slices;
mod spills;
mod stats;
mod types;

pub use change::{changed, near};
pub use functions::cells;
pub use generator::{Purpose, candidate};
pub use layout::{Candidate, Function, Step, Target};
pub use maps::{is_unlike_template, jump_map, jump_maps, maps};
pub use stats::Variety;
pub use types::{btf, btf_image};
