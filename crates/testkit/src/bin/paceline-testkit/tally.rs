//! What children say of programs, and how often.

use std::collections::BTreeMap;

use paceline_testkit::object_runs::{Findings, KernelVerdict};
use paceline_testkit::verdict::reason_class;
use serde_json::{Value, json};

/// What a child says of a program.
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
    /// Differences that come from addresses, or from memory that was never written.
    pub(crate) impure: u64,
    pub(crate) not_compiled: BTreeMap<String, (u64, u64)>,
    /// What one side, or both, refuse, or an engine does not take: how often, and the first seed.
    refused: BTreeMap<(&'static str, String), (u64, u64)>,
    pub(crate) slowest: (f64, u64),
}

impl Tally {
    /// Counts a reason.
    pub(crate) fn count(&mut self, what: &'static str, reason: &str, number: u64) {
        self.refused.entry((what, reason_class(reason))).or_insert((0, number)).0 += 1;
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
                self.count("both refuse:", &format!("{ours} / {}", text("reason")), number);
            }
            (Some(ours), "accepts") => self.count("ONLY THE KERNEL ACCEPTS:", ours, number),
            (None, "refuses") => self.count("ONLY WE ACCEPT:", text("reason"), number),
            (Some(ours), _) => self.count("refused:", ours, number),
            (None, _) => {}
        }
        if text("kernel") == "not asked" && !text("reason").is_empty() {
            self.count("the kernel is not asked:", text("reason"), number);
        }
        for pair in line["not_taken"].as_array().into_iter().flatten() {
            let reason = format!("{}: {}", pair[0].as_str().unwrap_or("?"), pair[1].as_str().unwrap_or("?"));
            self.count("does not take it:", &reason, number);
        }
    }

    /// Prints reasons, the most frequent first.
    pub(crate) fn print_reasons(&self) {
        let mut refused: Vec<_> = self.refused.iter().collect();
        refused.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for ((what, reason), (count, seed)) in refused {
            println!("{count:8} x {what} {reason} (seed {seed})");
        }
    }
}
