//! Text files, read with errors that tell what a file is where it is no text.

use std::fs;
use std::io;
use std::path::Path;

use paceline_suggest::format_of;

/// A text file cannot be read. The message does not have its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextFileError {
    /// The operating system failed to read it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no text in UTF-8.
    #[error("{}", not_text(.format, .line, .column))]
    NotText {
        /// The format that it has instead, with its article, where it is known.
        format: Option<&'static str>,
        /// Line of the first byte that is none of a text, from 1.
        line: usize,
        /// Its column in characters, from 1.
        column: usize,
    },
}

fn not_text(format: &Option<&'static str>, line: &usize, column: &usize) -> String {
    match format {
        Some(format) => format!("not a text file but {format}"),
        None => format!("not a text file: line {line}, column {column} is not UTF-8"),
    }
}

/// Reads a text file.
///
/// # Errors
/// [`TextFileError`].
pub fn read(path: impl AsRef<Path>) -> Result<String, TextFileError> {
    of_bytes(fs::read(path)?)
}

/// The text that the bytes of a file are.
///
/// # Errors
/// [`TextFileError::NotText`].
pub fn of_bytes(bytes: Vec<u8>) -> Result<String, TextFileError> {
    String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let (line, column) = end_of(std::str::from_utf8(before).unwrap_or_default());
        // Text with some wrong bytes has a place.
        let format = format_of(error.as_bytes()).filter(|format| *format != "text");
        TextFileError::NotText { format, line, column }
    })
}

/// Line and column behind a text.
pub(crate) fn end_of(text: &str) -> (usize, usize) {
    let line_start = text.rfind('\n').map_or(0, |newline| newline + 1);
    let column = text.get(line_start..).unwrap_or_default().chars().count() + 1;
    (text.matches('\n').count() + 1, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_by_its_format_or_its_place() {
        let told = |bytes: &[u8]| of_bytes(bytes.to_vec()).map_err(|error| error.to_string());
        assert_eq!(told(b"\xc3\xa4\n"), Ok("\u{e4}\n".to_owned()));
        assert_eq!(told(b"\x7fELF\x02\xff"), Err("not a text file but an ELF file".to_owned()));
        let place = "not a text file: line 2, column 3 is not UTF-8";
        assert_eq!(told(b"a = 1\n\xc3\xa4b\xff\n"), Err(place.to_owned()));
    }
}
