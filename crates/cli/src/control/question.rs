//! Requests to the thread that runs the command.

use std::io::Write;
use std::sync::mpsc::{Sender, channel};

use serde_json::Value as Json;

use super::request::Request;

/// The answer of a run that has ended.
pub(super) const ENDED: &str = "the run has ended";

/// A request, and where its answer goes.
pub(crate) struct Question {
    pub(crate) request: Request,
    pub(crate) answer: Sender<Result<Answer, String>>,
}

/// Bytes that follow the answer of a request, written on the connection's thread until the function that it gets says that the
/// connection or the run ends.
pub(crate) type Stream = Box<dyn FnOnce(&mut dyn Write, &dyn Fn() -> bool) + Send>;

/// The answer of a request that is not refused.
pub(crate) enum Answer {
    /// A value.
    Value(Json),
    /// Null, and then bytes, until the end of the connection.
    Stream(Stream),
}

/// Sends a request to the run, and waits for the answer.
pub(super) fn ask<Q: From<Question>>(request: Request, questions: &Sender<Q>) -> Result<Answer, String> {
    let (sender, receiver) = channel();
    let ended = |_| ENDED.to_owned();
    questions.send(Question { request, answer: sender }.into()).map_err(|_| ended(()))?;
    receiver.recv().map_err(|_| ended(()))?
}
