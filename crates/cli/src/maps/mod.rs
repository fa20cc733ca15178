//! Maps and global variables: filled from JSON files before a run, printed after it.

mod error;
mod file;
mod fold;
mod show;
mod state;

pub(crate) use file::{MapFile, identities, read_files};
pub(crate) use show::{Form, MapAsJson, MapsAsJson, differing, write_text};
pub(crate) use state::{SaveTo, distinct_names, restored};
