//! The frame of every call: no panic leaves it, and failures become statuses and error handles.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::opaque::Opaque;
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// Runs a call that gives a status.
#[inline]
pub(crate) fn status(error: ErrorOut, run: impl FnOnce() -> Result<(), Failure>) -> paceline_status {
    outcome(error, run).map_or_else(|status| status, |()| paceline_status::Ok)
}

/// Runs a call that gives a handle, or null.
pub(crate) fn handle<O: Opaque>(error: ErrorOut, run: impl FnOnce() -> Result<*mut O, Failure>) -> *mut O {
    outcome(error, run).unwrap_or(std::ptr::null_mut())
}

/// Runs a call that gives a value, or another one if it fails.
pub(crate) fn value<T>(error: ErrorOut, otherwise: T, run: impl FnOnce() -> Result<T, Failure>) -> T {
    outcome(error, run).unwrap_or(otherwise)
}

/// Runs a call without an error handle.
pub(crate) fn plain<T>(otherwise: T, run: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) | Err(_) => otherwise,
    }
}

/// Runs a call without an error handle that gives a status.
pub(crate) fn plain_status(run: impl FnOnce() -> Result<(), Failure>) -> paceline_status {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => paceline_status::Ok,
        Ok(Err(failure)) => failure.status(),
        Err(_) => paceline_status::Panic,
    }
}

#[inline]
fn outcome<T>(error: ErrorOut, run: impl FnOnce() -> Result<T, Failure>) -> Result<T, paceline_status> {
    // A value that a panic leaves inconsistent is in a locked cell, which is poisoned then, or was never given out.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => {
            error.write(std::ptr::null_mut());
            Ok(value)
        }
        Ok(Err(failure)) => Err(tell(error, failure)),
        Err(panic) => Err(tell(error, of_panic(&*panic))),
    }
}

#[cold]
fn tell(error: ErrorOut, failure: Failure) -> paceline_status {
    let status = failure.status();
    let handle = match failure {
        Failure::Told(report) if error.is_wanted() => crate::told::give(*report),
        Failure::Told(_) | Failure::Quiet(_) => std::ptr::null_mut(),
    };
    error.write(handle);
    status
}

#[cold]
fn of_panic(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("a bug of the library: {}", text.unwrap_or("a panic without a message"));
    Failure::new(paceline_status::Panic, message)
}
