//! Generated inputs: the elements of their maps, and how far the search for them has come.

mod case;
mod elements;
mod given;
mod progress;
pub(crate) mod toml;

pub(crate) use case::case;
pub(crate) use elements::contents;
pub(crate) use given::{UnsaidError, only_variables, variables_given};
pub(crate) use progress::{Bar, Words};
