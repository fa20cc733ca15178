//! Hints for misspelled names.

use paceline::ProgramError;

/// The name that was most likely meant.
pub(crate) fn closest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    paceline_suggest::nearest(wanted, names).map(|name| format!("did you mean `{name}`?"))
}

/// The closest name of a program that an object does not have.
pub(crate) fn closest_program(error: &ProgramError) -> Option<String> {
    match error {
        ProgramError::Unknown { name, names } => closest(name, names.iter().map(String::as_str)),
        _ => None,
    }
}
