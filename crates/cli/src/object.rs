//! Objects, from files or built in.

use std::fs;
use std::path::Path;

use paceline::port::CaptureReader;
use paceline::{Object, OpenError};

use crate::failure::Failure;

/// Reads an object file.
pub(crate) fn open(path: &Path) -> Result<Object, Failure> {
    let name = || path.display().to_string();
    let bytes = fs::read(path).map_err(|error| Failure::Object {
        name: name(),
        source: Box::new(error.into()),
        is_capture: false,
    })?;
    parse(&bytes).map_err(|source| {
        let is_capture = CaptureReader::new(bytes.as_slice()).is_ok();
        Failure::Object { name: name(), source: Box::new(source), is_capture }
    })
}

/// Reads an object from memory.
pub(crate) fn parse(bytes: &[u8]) -> Result<Object, OpenError> {
    Object::parse(bytes)
}
