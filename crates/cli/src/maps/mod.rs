//! Maps and global variables: filled from JSON files before a run, printed after it.

mod failure;
mod fill;
mod fold;
mod json;
mod json_file;
mod show;

use paceline::MapSpec;
use paceline::btf::{Btf, DataSection, Type};

pub(crate) use failure::MapFailure;
pub(crate) use fill::{set_elements, set_variables};
pub(crate) use json_file::{identities, read_files};
pub(crate) use show::{MapsAsJson, write_text};

/// The variables of a map that is a section of global data.
fn variables<'a>(btf: Option<&'a Btf>, spec: &MapSpec) -> Option<&'a DataSection> {
    match btf?.get(spec.value_type)? {
        Type::DataSection(section) if spec.max_entries == 1 => Some(section),
        _ => None,
    }
}
