//! Errors of archives as exceptions.

use std::io;

use paceline::capture::ReadError;
use paceline_archive::{Error, MergeError};
use pyo3::PyErr;

use crate::error::{Class, Failure};

/// The exception of an error. One that an object of Python raised is raised as it is.
pub(super) fn raised(error: Error) -> PyErr {
    match error {
        Error::Open { name, source } => from_python(source)
            .unwrap_or_else(|source| Failure::of(Class::Capture, &source).in_file(Some(&name)).into()),
        Error::Read { name, source } => match *source {
            ReadError::Io { offset, source } => from_python(source).unwrap_or_else(|source| {
                Failure::new(Class::Capture, ReadError::Io { offset, source }).in_file(Some(&name)).into()
            }),
            source => Failure::of(Class::Capture, &source).in_file(Some(&name)).into(),
        },
        Error::Fault { name, offset, fault } => {
            let failure = Failure::of(Class::Fault, &fault).at(format!("the packet at byte {offset}"));
            failure.in_file(Some(&name)).into()
        }
        error => Failure::of(Class::Capture, &error).into(),
    }
}

fn from_python(error: io::Error) -> Result<PyErr, io::Error> {
    error.downcast::<PyErr>()
}

/// The exception of maps that cannot be made one.
pub(super) fn not_merged(error: MergeError) -> PyErr {
    Failure::of(Class::Map, &error).into()
}
