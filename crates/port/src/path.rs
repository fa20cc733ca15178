//! Files by name, where `-` is standard input or output.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Opens a capture to read; `-` is standard input.
///
/// # Errors
/// The operating system's.
pub fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") { Ok(Box::new(io::stdin())) } else { Ok(Box::new(File::open(path)?)) }
}

/// Creates a capture to write, or empties the one there is; `-` is standard output.
///
/// # Errors
/// The operating system's.
pub fn create(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    if path == Path::new("-") { Ok(Box::new(io::stdout())) } else { Ok(Box::new(File::create(path)?)) }
}
