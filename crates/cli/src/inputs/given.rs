//! Maps that are given contents.

use std::fmt::Write as _;
use std::path::Path;

use paceline::Object;

use super::toml;

use crate::common::failure::CommandError;
use crate::maps::MapFile;
use crate::object::{ObjectArgs, sections_set};

/// A map that is no section of variables is to be filled, which inputs do themselves.
#[derive(Debug, thiserror::Error)]
#[error("{0}: inputs come with what maps must hold, so that only variables can be given")]
pub(crate) struct FilledError(String);

impl CommandError for FilledError {
    fn hint(&self) -> Option<String> {
        Some("`paceline test` fills maps as its files say".to_owned())
    }
}

/// Refuses contents for maps that hold no variables.
pub(crate) fn only_variables(
    args: &ObjectArgs,
    files: &[MapFile],
    object: &Object,
) -> Result<(), FilledError> {
    if let Some(path) = &args.restore_maps {
        return Err(FilledError(format!("--restore-maps {}", path.display())));
    }
    for file in files {
        let spec = object.maps().iter().find(|spec| spec.name == file.map);
        // Names of no map are refused when the file is read.
        let holds_variables =
            |spec| object.btf().is_some_and(|btf| paceline::contents::variables(btf, spec).is_some());
        if spec.is_some_and(|spec| !holds_variables(spec)) {
            return Err(FilledError(format!("--map {}", file.map)));
        }
    }
    Ok(())
}

/// Variables cannot be written into a test file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnsaidError {
    #[error(
        "--map {0} and --set: a test file takes the variables of a map from a file or one by one, not both"
    )]
    Both(String),
    #[error("--set: test files cannot say the value of a variable in {0}")]
    Value(String),
}

impl CommandError for UnsaidError {}

/// The lines of a test file that give variables what the command line gave them; `path` writes the path of a file.
pub(crate) fn variables_given(
    args: &ObjectArgs,
    object: &Object,
    path: &dyn Fn(&Path) -> String,
) -> Result<String, UnsaidError> {
    let (mut text, files) = (String::new(), args.files());
    for file in &files {
        let _ = writeln!(text, "maps.{} = {}", toml::string(&file.map), toml::string(&path(&file.path)));
    }
    for (section, variables) in sections_set(&args.set, object) {
        if files.iter().any(|file| file.map == section) {
            return Err(UnsaidError::Both(section));
        }
        let value = toml::value(&variables).ok_or_else(|| UnsaidError::Value(section.clone()))?;
        let _ = writeln!(text, "maps.{} = {value}", toml::string(&section));
    }
    Ok(text)
}
