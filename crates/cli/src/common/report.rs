//! Results on standard output.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::console;
use super::failure::{CommandError, Failure};

/// Standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub(crate) struct StdoutError(pub(crate) io::Error);

impl CommandError for StdoutError {
    fn is_closed_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Writes a report to standard output.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<ExitCode, Failure> {
    console::write_stdout(write).map_err(StdoutError)?;
    Ok(ExitCode::SUCCESS)
}

/// The result of a command: text for people, or a line of JSON for tools.
pub(crate) trait Report: Serialize {
    /// Writes the text.
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Prints the report, to standard error where standard output has the packets.
    fn print(&self, json: bool, aside: bool) -> Result<(), Failure> {
        let write = |out: &mut dyn Write| {
            if !json {
                return self.write_text(out);
            }
            serde_json::to_writer(&mut *out, self)?;
            writeln!(out)
        };
        if aside {
            console::print_aside(write);
            return Ok(());
        }
        print(write).map(drop)
    }
}
