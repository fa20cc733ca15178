//! Object files.

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// Why a file gives no object.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What is in it is no object that Paceline understands.
    #[error(transparent)]
    Parse(#[from] paceline_load::LoadError),
}

/// The programs and maps of an object file, as specs: nothing is made yet.
///
/// Derefs to [`paceline_load::Object`], whose fields can be read.
#[derive(Clone, Debug)]
pub struct Object {
    inner: paceline_load::Object,
}

impl Object {
    /// Reads an object file.
    ///
    /// # Errors
    /// [`OpenError`]; it does not repeat the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::parse(&fs::read(path)?)
    }

    /// Reads an object from memory.
    ///
    /// # Errors
    /// [`OpenError::Parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        Ok(Self { inner: paceline_load::Object::parse(bytes)? })
    }

    /// The specs, to change before the object is loaded.
    pub fn specs_mut(&mut self) -> &mut paceline_load::Object {
        &mut self.inner
    }
}

impl Deref for Object {
    type Target = paceline_load::Object;
    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}
