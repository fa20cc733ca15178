//! Requests to the thread that runs the command.

use std::sync::mpsc::{Sender, channel};

use serde_json::Value as Json;

/// A request, and where its answer goes: a value, or the reason for a refusal.
pub(crate) struct Question {
    pub(crate) request: Json,
    pub(crate) answer: Sender<Result<Json, String>>,
}

/// The answer of a run that has ended.
pub(super) const ENDED: &str = "the run has ended";

/// Sends a request to the run, and waits for the answer.
pub(super) fn ask<Q: From<Question>>(request: Json, questions: &Sender<Q>) -> Result<Json, String> {
    let (sender, receiver) = channel();
    let ended = |_| ENDED.to_owned();
    questions.send(Question { request, answer: sender }.into()).map_err(|_| ended(()))?;
    receiver.recv().map_err(|_| ended(()))?
}
