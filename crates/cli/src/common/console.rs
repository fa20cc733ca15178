//! Text on standard output and standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};

pub(crate) use paceline::diagnosis::shown;

/// Writes a result to standard output.
pub(super) fn write_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    print_to(io::stdout().lock(), write)
}

/// Writes a report where it does not mix with packets: to standard error. An error of writing has no reader.
pub(super) fn print_aside(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let _ = print_to(io::stderr().lock(), write);
}

fn print_to(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = Printable(BufWriter::new(out));
    write(&mut out)?;
    out.flush()
}

/// Prints a note, which is no result.
pub(crate) fn note(text: impl Display) {
    label("note", AnsiColor::Cyan.on_default().bold(), text);
}

/// Prints a hint.
pub(crate) fn hint(text: impl Display) {
    label("hint", AnsiColor::Cyan.on_default().bold(), text);
}

/// Prints lines that are no results, such as warnings.
pub(crate) fn warnings(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    print_aside(write);
}

/// Prints an error.
pub(crate) fn error(text: impl Display) {
    label("error", AnsiColor::Red.on_default().bold(), text);
}

/// Prints a text that is drawn for the terminal already, with color if [`stderr_has_color`].
pub(crate) fn drawn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn label(label: &str, style: Style, text: impl Display) {
    let label = if stderr_has_color() { format!("{style}{label}:{style:#}") } else { format!("{label}:") };
    let mut err = io::stderr().lock();
    let _ = write!(err, "{label} ").and_then(|()| print_to(err, |out| writeln!(out, "{text}")));
}

/// Whether messages have color, by the rules of no-color.org.
pub(crate) fn stderr_has_color() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !no_color && !dumb && io::stderr().is_terminal()
}

/// Shows control characters instead of sending them to the terminal: names and source lines come from objects that
/// anybody may have made.
struct Printable<W: Write>(W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_control = |b: &u8| b.is_ascii_control() && !matches!(b, b'\n' | b'\t');
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(is_control) {
            let (plain, from) = rest.split_at(at);
            self.0.write_all(plain)?;
            let Some((control, after)) = from.split_first() else { break };
            write!(self.0, "\\x{control:02x}")?;
            rest = after;
        }
        self.0.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        let mut out = Vec::new();
        print_to(&mut out, |out| write!(out, "a\x1b[31mb\tc\n\x7f\u{e4}\x00")).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\\x1b[31mb\tc\n\\x7f\u{e4}\\x00");
    }
}
