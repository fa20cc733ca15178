//! Errors: data in Rust, exceptions of `paceline._errors` in Python.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use paceline::diagnosis::{Diagnosis, refused_to_json, render};
use paceline::{Object, ProgramError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use serde_json::Value as Json;

use crate::json;

/// Class of an exception, by its name in `paceline._errors`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Object,
    Verifier,
    Program,
    Map,
    Value,
    Capture,
    Filter,
    Packet,
    Chain,
    Network,
    Fault,
    Internal,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Object => "ObjectError",
            Self::Verifier => "VerifierError",
            Self::Program => "ProgramError",
            Self::Map => "MapError",
            Self::Value => "MapValueError",
            Self::Capture => "CaptureError",
            Self::Filter => "FilterError",
            Self::Packet => "PacketError",
            Self::Chain => "ChainError",
            Self::Network => "NetworkError",
            Self::Fault => "FaultError",
            Self::Internal => "InternalError",
        }
    }
}

/// An operation failed: what becomes an exception once the interpreter is attached.
#[derive(Debug)]
pub(crate) struct Failure(Box<Content>);

#[derive(Debug)]
struct Content {
    class: Class,
    message: String,
    /// Attributes of the exception.
    file: Option<String>,
    place: Option<String>,
    cause: Option<String>,
    data: Option<Json>,
}

impl Failure {
    pub(crate) fn new(class: Class, cause: impl ToString) -> Self {
        let cause = cause.to_string();
        let message = cause.clone();
        Self(Box::new(Content { class, message, file: None, place: None, cause: Some(cause), data: None }))
    }

    /// An error with its causes.
    pub(crate) fn of(class: Class, error: &dyn std::error::Error) -> Self {
        Self::new(class, paceline::with_causes(error))
    }

    /// Names the file, before the cause in the message.
    pub(crate) fn in_file(mut self, file: Option<&str>) -> Self {
        if let Some(file) = file {
            self.0.message = format!("{file}: {}", self.0.message);
            self.0.file = Some(file.to_owned());
        }
        self
    }

    /// Names the file and the place in it, before the cause in the message.
    pub(crate) fn in_text(mut self, file: &str, place: impl ToString) -> Self {
        let place = place.to_string();
        self.0.message = format!("{file}:{place}: {}", self.0.message);
        self.0.file = Some(file.to_owned());
        self.0.place = Some(place);
        self
    }

    /// Names the place in the file, or in the text.
    pub(crate) fn at(mut self, place: impl ToString) -> Self {
        self.0.place = Some(place.to_string());
        self
    }

    /// Sets the data of a refusal, or the number of an error.
    pub(crate) fn with_data(mut self, data: Json) -> Self {
        self.0.data = Some(data);
        self
    }

    /// A program cannot be had: the verifier's diagnosis, where it refuses one.
    pub(crate) fn no_program(file: Option<&str>, object: &Object, error: &ProgramError) -> Self {
        let Some(diagnosis) = Diagnosis::of(file.unwrap_or("object"), object, error) else {
            return Self::new(Class::Program, error).in_file(file);
        };
        let data = refused_to_json(&diagnosis);
        let place = match (data.get("file").and_then(Json::as_str), data.get("line")) {
            (Some(source), Some(line)) => format!("{source}:{line}"),
            _ => format!("instruction {}", data["slot"]),
        };
        Self(Box::new(Content {
            class: Class::Verifier,
            message: render(&diagnosis, false),
            file: file.map(str::to_owned),
            place: Some(place),
            cause: Some(diagnosis.cause()),
            data: Some(data),
        }))
    }

    fn raise(self, py: Python<'_>) -> PyResult<PyErr> {
        let Content { class, message, file, place, cause, data } = *self.0;
        let arguments = PyDict::new(py);
        arguments.set_item("file", file)?;
        arguments.set_item("place", place)?;
        arguments.set_item("cause", cause)?;
        if let Some(data) = &data {
            arguments.set_item("data", json::to_python(py, data)?)?;
        }
        let class = class_of(py, class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&arguments))?))
    }
}

fn class_of(py: Python<'_>, class: Class) -> PyResult<Bound<'_, PyType>> {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || Ok::<_, PyErr>(py.import("paceline._errors")?.into_any().unbind()))?;
    Ok(module.bind(py).getattr(class.name())?.cast_into()?)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.raise(py).unwrap_or_else(|error| error))
    }
}

/// Runs something that may panic because of a fault of ours, which becomes an `InternalError`.
pub(crate) fn guarded<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(internal(&*panic).into()))
}

fn internal(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
    Failure::new(Class::Internal, format!("a fault of Paceline itself: {text}"))
}
