//! Failures of commands, and how they are reported.

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::process::ExitCode;

use paceline::with_causes;
use serde_json::{Value as Json, json};

use super::console;

/// An error that ends a command with status 1. The message is `Display` with all causes, and has file names as the user gave them.
pub(crate) trait CommandError: Error {
    /// Advice for the user, in a line.
    fn hint(&self) -> Option<String> {
        None
    }

    /// The error as a drawing for the terminal, in the place of the message; ends without a line break.
    fn render(&self, _color: bool) -> Option<String> {
        None
    }

    /// The refusal of a program by the verifier, as JSON.
    fn refused(&self) -> Option<Json> {
        None
    }

    /// Whether the reader of the output closed it, as `head` does, which is no failure.
    fn is_closed_pipe(&self) -> bool {
        false
    }
}

/// The reason why a command ends with status 1.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<dyn CommandError>,
    /// Whether a report on standard output has it.
    is_reported: bool,
}

impl<E: CommandError + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: Box::new(error), is_reported: false }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(&*self.error))
    }
}

impl Error for Failure {}

impl Failure {
    /// A failure that a report on standard output contains already.
    pub(crate) fn reported(self) -> Self {
        Self { is_reported: true, ..self }
    }

    /// Reports the failure, also as JSON on standard output if wanted, and returns the exit status.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.is_closed_pipe() {
            return ExitCode::SUCCESS;
        }
        self.tell();
        if json && !self.is_reported {
            // A write error here has no reader either.
            let _ = console::write_stdout(|out| writeln!(out, "{}", self.to_json()));
        }
        ExitCode::FAILURE
    }

    /// The failure as JSON: `error`, `hint` and, where the verifier refuses a program, `refused`.
    pub(crate) fn to_json(&self) -> Json {
        let mut json = json!({ "error": self.to_string(), "hint": self.hint() });
        if let Some(refused) = self.error.refused() {
            json["refused"] = refused;
        }
        json
    }

    /// The failure and the hint in lines, without color.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = self.error.render(false).unwrap_or_else(|| self.to_string());
        let hint = self.hint().map(|hint| format!("hint: {hint}"));
        text.lines().map(str::to_owned).chain(hint).collect()
    }

    /// Prints the failure and the hint to standard error.
    pub(crate) fn tell(&self) {
        match self.error.render(console::stderr_has_color()) {
            Some(text) => console::drawn(&text),
            None => console::error(self),
        }
        if let Some(hint) = self.hint() {
            console::hint(hint);
        }
    }

    /// Whether the reader of the output closed it, which is no failure.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.error.is_closed_pipe()
    }

    /// Advice for the user, in a line.
    pub(crate) fn hint(&self) -> Option<String> {
        self.error.hint()
    }
}
