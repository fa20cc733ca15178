//! Failed commands, and the reasons in their logs.

use std::fmt;

use paceline_spec::Errno;

/// A `bpf(2)` command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {errno}{}", self.log_tail())]
pub struct KernelError {
    /// The command, such as `load program`.
    pub operation: &'static str,
    /// The kernel's error.
    pub errno: Errno,
    /// The verifier's or BTF checker's log; empty for other commands.
    pub log: String,
}

impl KernelError {
    pub(crate) fn new(operation: &'static str, errno: Errno) -> Self {
        Self { operation, errno, log: String::new() }
    }

    /// The last line of the log that is not a statistic or a state: the verifier's reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        let told = |line: &&str| !line.is_empty() && !ADDENDA.iter().any(|start| line.starts_with(start));
        self.log.lines().rev().map(str::trim).find(told).unwrap_or("")
    }

    /// The slot of the instruction that the verifier's reason refers to; `None` for reasons about the whole program.
    #[must_use]
    pub fn guilty_slot(&self) -> Option<usize> {
        let reason = self.reason();
        if ABOUT_WHOLE_PROGRAMS.iter().any(|start| reason.starts_with(start)) {
            return None;
        }
        let named = NAMES_SLOT.iter().find_map(|before| reason.split_once(before));
        match named {
            Some((_, slot)) => leading_number(slot),
            // The kernel's verifier logs each instruction before it checks it: `7: (95) exit`.
            None => self.log.lines().rev().find_map(|line| {
                let (slot, rest) = line.split_once(": ")?;
                if rest.starts_with('(') { slot.parse().ok() } else { None }
            }),
        }
    }

    fn log_tail(&self) -> impl fmt::Display {
        let reason = self.reason();
        if reason.is_empty() { String::new() } else { format!(": {reason}") }
    }
}

/// Prefixes of lines that follow the reason.
const ADDENDA: &[&str] = &["processed ", "verification time", "stack depth ", "cur state:", "old state:"];

/// Prefixes of reasons that refer to no instruction (`kernel/bpf/verifier.c`), although instructions may be logged before
/// them.
const ABOUT_WHOLE_PROGRAMS: &[&str] =
    &["combined stack size", "tail_calls are not allowed", "BPF program is too large", "The sequence of"];

/// Prefixes of the guilty slot in reasons that name it.
const NAMES_SLOT: &[&str] = &["unreachable insn ", "from insn ", "detected at insn "];

fn leading_number(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Errno, KernelError};

    fn guilty(log: &str) -> Option<usize> {
        KernelError { operation: "load program", errno: Errno::EINVAL, log: log.to_owned() }.guilty_slot()
    }

    #[test]
    fn finds_the_guilty_slot() {
        let walked = "0: R1=ctx() R10=fp0\n0: (b7) r2 = 1\n12: (95) exit\n";
        let after = "processed 2 insns (limit 1000000) max_states_per_insn 0\n";
        assert_eq!(guilty(&format!("{walked}R0 !read_ok\n{after}")), Some(12));
        assert_eq!(guilty("unreachable insn 3\n"), Some(3));
        assert_eq!(guilty("jump out of range from insn 1 to 9\n"), Some(1));
        let states = "cur state: R0=1\nold state: R0=1\n";
        assert_eq!(guilty(&format!("{walked}infinite loop detected at insn 7\n{states}{after}")), Some(7));
        assert_eq!(
            guilty(&format!("{walked}combined stack size of 2 calls is 528. Too large\n{after}")),
            None
        );
        assert_eq!(guilty("last insn is not an exit or jmp\n"), None);
    }
}
