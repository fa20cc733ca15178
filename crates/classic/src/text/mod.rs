//! Filters as text: tcpdump's three formats, bpf_asm's language, and source code.

mod assemble;
mod disassemble;
mod error;
mod lexer;
mod numbers;
mod source;

pub use assemble::assemble;
pub use disassemble::{to_asm, to_c_array, to_decimal, to_listing};
pub use error::{Problem, TextError};
pub use numbers::{parse_c_array, parse_decimal};
pub use source::{Language, filter_source, program_source};

use super::insn::SockFilter;

/// Parses a filter in any format: decimal numbers (`-ddd`), a C array (`-dd`), or assembly. The first character determines the
/// format.
///
/// # Errors
/// The first syntax error of that format, with its position.
pub fn parse(text: &str) -> Result<Vec<SockFilter>, TextError> {
    match text.trim_start().chars().next() {
        Some('{') => parse_c_array(text),
        Some('0'..='9') => parse_decimal(text),
        _ => assemble(text),
    }
}
