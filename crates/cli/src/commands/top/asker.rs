//! Asks a live run beside the view, which goes on while no answer comes.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::control::ControlError;

/// Time after which the view says that no answer comes.
const SOON: Duration = Duration::from_secs(1);

/// One request at a time, on a thread of its own.
pub(super) struct Asker {
    requests: Sender<()>,
    answers: Receiver<Result<Json, ControlError>>,
    /// When the request was made that has no answer yet.
    asked: Option<Instant>,
    /// Whether the last request had no answer in time.
    was_silent: bool,
}

impl Asker {
    /// Makes requests by a function, whose time is limited. The thread ends with the process.
    pub(super) fn new(ask: impl Fn() -> Result<Json, ControlError> + Send + 'static) -> Self {
        let ((requests, asked), (answered, answers)) = (channel(), channel());
        // Either side ends when the other one has gone.
        thread::spawn(move || while asked.recv().is_ok() && answered.send(ask()).is_ok() {});
        Self { requests, answers, asked: None, was_silent: false }
    }

    /// Makes a request, unless there is one.
    pub(super) fn ask(&mut self) {
        if self.asked.is_none() && self.requests.send(()).is_ok() {
            self.asked = Some(Instant::now());
        }
    }

    /// Whether there is a request without an answer.
    pub(super) fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the run does not answer.
    pub(super) fn is_silent(&self) -> bool {
        self.was_silent || self.asked.is_some_and(|asked| asked.elapsed() > SOON)
    }

    /// The answer, if one has come.
    ///
    /// # Errors
    /// [`ControlError`], but for a run that does not answer in time: it may later.
    pub(super) fn answer(&mut self) -> Result<Option<Json>, ControlError> {
        let answer = match self.answers.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(None),
        };
        self.asked = None;
        self.was_silent = matches!(answer, Err(ControlError::Silent { .. }));
        if self.was_silent { Ok(None) } else { answer.map(Some) }
    }
}
