//! Maps and global variables: filled from JSON files before a run, printed after it.

mod elements;
mod encode;
mod error;
mod fold;
mod json_file;
mod show;
mod state;
mod variables;

pub(crate) use elements::set_elements;
pub(crate) use error::MapFileError;
pub(crate) use json_file::{JsonFile, MapFile, identities, read_files};
pub(crate) use show::{MapsAsJson, shown, write_text};
pub(crate) use state::{SaveTo, SavedMaps, distinct_names};
pub(crate) use variables::set_variables;
