//! Generated inputs: the elements of their maps, and how far the search for them has come.

mod elements;
mod given;
mod progress;
pub(crate) mod toml;

pub(crate) use elements::{contents, expected};
pub(crate) use given::only_variables;
pub(crate) use progress::{Bar, Words};
