//! Maps that are given contents.

use paceline::Object;

use crate::common::failure::CommandError;
use crate::maps::MapFile;

/// A map that is no section of variables is to be filled, which inputs do themselves.
#[derive(Debug, thiserror::Error)]
#[error("--map {0}: inputs come with what maps must hold, so that only variables can be given")]
pub(crate) struct FilledError(String);

impl CommandError for FilledError {
    fn hint(&self) -> Option<String> {
        Some("`paceline test` fills maps as its files say".to_owned())
    }
}

/// Refuses contents for maps that hold no variables.
pub(crate) fn only_variables(files: &[MapFile], object: &Object) -> Result<(), FilledError> {
    for file in files {
        let spec = object.maps().iter().find(|spec| spec.name == file.map);
        // Names of no map are refused when the file is read.
        let holds_variables =
            |spec| object.btf().is_some_and(|btf| paceline::contents::variables(btf, spec).is_some());
        if spec.is_some_and(|spec| !holds_variables(spec)) {
            return Err(FilledError(file.map.clone()));
        }
    }
    Ok(())
}
