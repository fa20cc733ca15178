//! Failures of a worker's turn.

use super::counts::Errors;
use super::error::WorkerError;

/// Counts each failure, and keeps the first one.
pub(super) struct Failures<'a> {
    errors: &'a Errors,
    first: Option<WorkerError>,
}

impl<'a> Failures<'a> {
    pub(super) fn new(errors: &'a Errors) -> Self {
        Self { errors, first: None }
    }

    #[cold]
    pub(super) fn add(&mut self, error: WorkerError) {
        self.errors.note(&error);
        self.first.get_or_insert(error);
    }

    /// The first failure, or a value if there was none.
    pub(super) fn or<T>(self, value: T) -> Result<T, WorkerError> {
        self.first.map_or(Ok(value), Err)
    }
}
