//! Reports of children about programs, and their statistics.

use std::collections::BTreeMap;

use paceline_testkit::object_runs::{Findings, KernelVerdict};
use paceline_testkit::say;
use paceline_testkit::verdict::reason_class;
use serde_json::{Value, json};

/// Report of a child about a program.
pub(crate) fn line_of(number: u64, what: &str, findings: &Findings) -> Value {
    let (kernel, reason) = match &findings.verdicts.kernel {
        None => ("not asked", ""),
        Some(KernelVerdict::Accepted) => ("accepts", ""),
        Some(KernelVerdict::Refused(reason)) => ("refuses", reason.as_str()),
        Some(KernelVerdict::NotAsked(reason)) => ("not asked", reason.as_str()),
    };
    json!({
        "kind": "program",
        "program": number,
        "what": what,
        "ours": findings.verdicts.ours.verified.as_ref().err(),
        "seconds": findings.verdicts.ours.time.as_secs_f64(),
        "kernel": kernel,
        "reason": reason,
        "not_taken": findings.not_taken,
        "difference": findings.difference,
        "pure": findings.pure,
    })
}

/// Counts.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) programs: u64,
    pub(crate) both_accept: u64,
    pub(crate) both_refuse: u64,
    pub(crate) ours_accepted: u64,
    pub(crate) kernel_asked: u64,
    pub(crate) failures: usize,
    /// Differences that depend on addresses, or on uninitialized memory.
    pub(crate) impure: u64,
    pub(crate) not_compiled: u64,
    /// Refusals by one side, both, or an engine: number, and first seed.
    refused: BTreeMap<(&'static str, String), (u64, u64)>,
    pub(crate) slowest: (f64, u64),
}

impl Tally {
    /// Counts a reason.
    pub(crate) fn count(&mut self, what: &'static str, reason: &str, number: u64) {
        self.refused.entry((what, reason.to_owned())).or_insert((0, number)).0 += 1;
    }

    pub(crate) fn add(&mut self, line: &Value) {
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        let number = line["program"].as_u64().unwrap_or_default();
        self.programs += 1;
        let differs = line["difference"].is_array();
        self.impure += u64::from(differs && line["pure"].as_bool() == Some(false));
        let seconds = line["seconds"].as_f64().unwrap_or_default();
        if seconds > self.slowest.0 {
            self.slowest = (seconds, number);
        }
        let ours = line["ours"].as_str();
        self.ours_accepted += u64::from(ours.is_none());
        self.kernel_asked += u64::from(text("kernel") != "not asked");
        match (ours, text("kernel")) {
            (None, "accepts") => self.both_accept += 1,
            (Some(ours), "refuses") => {
                self.both_refuse += 1;
                self.count("both refuse:", &cause(ours), number);
            }
            (Some(ours), "accepts") => self.count("ONLY THE KERNEL ACCEPTS:", &cause(ours), number),
            (None, "refuses") => self.count("ONLY WE ACCEPT:", &cause(text("reason")), number),
            (Some(ours), _) => self.count("refused:", &cause(ours), number),
            (None, _) => {}
        }
        if text("kernel") == "not asked" && !text("reason").is_empty() {
            self.count("the kernel is not asked:", &cause(text("reason")), number);
        }
        // All engines have the same reason if a map cannot be created.
        let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pair in line["not_taken"].as_array().into_iter().flatten() {
            let part = |index: usize| pair[index].as_str().unwrap_or("?");
            reasons.entry(cause(part(1))).or_default().push(part(0));
        }
        for (reason, engines) in reasons {
            self.count("does not run:", &format!("{reason} ({})", engines.join(", ")), number);
        }
    }

    /// Prints reasons, the most frequent first: all of them, or a limited number and all on which the verdicts differ.
    pub(crate) fn print_reasons(&self, all: bool) {
        let mut refused: Vec<_> = self.refused.iter().collect();
        refused.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let is_shown = |index: usize, what: &str| all || index < MOST_REASONS || what.starts_with("ONLY");
        let mut rest = (0, 0);
        for (index, ((what, reason), (count, seed))) in refused.into_iter().enumerate() {
            if is_shown(index, what) {
                say!("{count:8} x {what} {reason} (seed {seed})");
            } else {
                rest = (rest.0 + count, rest.1 + 1);
            }
        }
        if rest.1 > 0 {
            say!("{:8} x {} other reasons (--stats prints them)", rest.0, rest.1);
        }
    }
}

/// Number of lines of reasons in a summary.
const MOST_REASONS: usize = 14;

/// A reason without contents of registers, hints and numbers.
pub(crate) fn cause(reason: &str) -> String {
    let reason = reason.split(';').next().unwrap_or(reason);
    let reason = reason.split(" (give ").next().unwrap_or(reason);
    reason_class(reason.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_do_not_depend_on_registers() {
        let with = |state: &str| cause(&format!("instruction 7: r2 is read but not set{state}"));
        let hint = " (give it a value on every path that leads here)";
        assert_eq!(with(&format!("; r1 is pointer to map; r3 is 4{hint}")), with(hint));
        assert_eq!(with(""), "instruction #: r# is read but not set");
        assert_ne!(with(""), cause("instruction 7: unreachable instruction"));
    }
}
