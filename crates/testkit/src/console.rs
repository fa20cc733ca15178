//! Standard output of commands.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};
use std::process::exit;

/// Prints a line as `println!` does, but without a panic.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::console::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints text. If standard output is closed it ends the process: with status 0 if the reader has closed the pipe, as `head`
/// does, and otherwise, as on a full disk, with status 2 and the reason.
#[allow(clippy::print_stderr, reason = "standard output cannot say it")]
pub fn print(text: Arguments<'_>) {
    let mut out = stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            eprintln!("standard output: {error}");
            exit(2)
        }
    }
}
