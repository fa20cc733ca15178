//! Exploration of programs: which are explored, how far, and the inputs that are found.

mod bounds;
mod case;
mod elements;
mod given;
mod progress;
mod search;
mod subjects;
pub(crate) mod toml;
mod workers;

pub(crate) use bounds::bounds_json;
pub(crate) use case::case;
pub(crate) use elements::contents;
pub(crate) use given::{UnsaidError, variables_given};
pub(crate) use progress::Words;
pub(crate) use search::{SearchArgs, followed};
pub(crate) use subjects::{Subjects, Unexplored};
pub(crate) use workers::each;
