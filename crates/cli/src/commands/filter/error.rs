//! Errors of filters.

use paceline::Fault;
use paceline::filter::text::TextError;
use paceline::filter::{self, CheckError, Missing, Rule};
use paceline::text_file::TextFileError;

use crate::common::failure::CommandError;

/// The reason why packets or system calls cannot be filtered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    #[error("{0}")]
    Libpcap(Missing),
    #[error("{name}")]
    Read { name: String, source: TextFileError },
    #[error("{name}: it is longer than {} MiB", .most >> 20)]
    TooLong { name: String, most: u64 },
    #[error("{name}:{}:{}: {}", .error.line, .error.column, .error.problem)]
    Text { name: String, error: TextError },
    #[error("{name}")]
    Check { name: String, source: CheckError },
    #[error("{name}")]
    Program { name: String, source: Box<filter::FilterError> },
    #[error("{name}")]
    Compare { name: String, source: Box<filter::CompareFiltersError> },
    #[error("{name}: {fault}")]
    Fault { name: String, fault: Box<Fault> },
    #[error("{name}:{line}:{column}: {problem}")]
    List { name: String, line: usize, column: usize, problem: ListProblem },
    #[error("{name}: program {program} is of type {kind}, and a filter is of type socket_filter")]
    NoFilter { name: String, program: String, kind: &'static str },
    #[error("{name}: an object has no classic program to print")]
    NotClassic { name: String },
    #[error("{0} is for objects, and --program names none")]
    ForObjects(&'static str),
    #[error("{name}: the file contains no filter")]
    NoFilters { name: String },
    #[error("{name}:{line}:{column}")]
    SystemCall { name: String, line: usize, column: usize, source: CallError },
}

impl CommandError for FilterError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Libpcap(_) => {
                "install it (Debian: apt install libpcap0.8), or give a program: --program FILE takes what \
                 `tcpdump -ddd EXPRESSION` prints elsewhere"
            }
            Self::Read { source: TextFileError::NotText { .. }, .. } => {
                "-F FILE has an expression, --filters FILE lines `name: expression`, --program FILE what `tcpdump -ddd` or `-dd` \
                 prints, or bpf_asm's language"
            }
            Self::Text { .. } => {
                "a program is what `tcpdump -ddd` or `-dd` prints, or bpf_asm's language; expressions are given \
                 without --program"
            }
            Self::Check { source: CheckError::Insn { rule: Rule::MemoryUnset(_), .. }, .. } => {
                "libpcap's code for `geneve` notes where the inner packet is, and what is written behind it reads that also where there \
                 is none: in an expression, put `geneve` last, such as `udp or (geneve and ip)`"
            }
            Self::NoFilter { .. } => "`paceline run` runs it, and writes the packets that pass to --out",
            Self::NotClassic { .. } => "`paceline dump` prints programs of objects",
            Self::NoFilters { .. } => "each line of it is `name: expression`",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// An error in a file of filters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListProblem {
    #[error("expected `name: expression`")]
    NoName,
    #[error("a name has letters, digits, `-`, `_` and `.`, and starts with a letter, digit or `_`")]
    Name,
    #[error("filter {name} is already defined on line {line}")]
    Twice { name: String, line: usize },
    #[error("more than {most} filters")]
    TooMany { most: usize },
}

/// The reason why a line is no system call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    #[error("`{0}` is not a number: expected decimal digits, or hexadecimal digits after 0x")]
    Number(String),
    #[error("{text} does not fit into {bits} bits")]
    TooLarge { text: String, bits: u32 },
    #[error("a system call has a number, an arch, an instruction pointer and six arguments, and no more")]
    TooMany,
}
