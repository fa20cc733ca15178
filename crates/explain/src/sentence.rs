//! An explanation in one sentence.

use std::fmt;

use paceline_frame::Verdict;

use crate::trace::{At, Explanation, Fact, FactKind};

impl Explanation {
    /// One sentence: `dropped at firewall.bpf.c:88 because rules[{port: 22}].action is 1`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let fate = fate(self.outcome.verdict);
        if let Some(fault) = &self.outcome.fault {
            return format!("{fate} {}: {}", self.place(self.end), fault.kind);
        }
        let Some(branch) = self.deciding() else {
            return format!("{fate} {}, whatever the branches", self.place(self.end));
        };
        let place = self.place(branch.at);
        let facts = if branch.facts.is_empty() { &branch.variables } else { &branch.facts };
        match (facts.as_slice(), self.line(branch.at)) {
            ([], Some(line)) => format!("{fate} {place} by `{}`", line.text.trim()),
            ([], None) => format!("{fate} {place}"),
            (facts, _) => {
                let facts: Vec<_> = facts.iter().map(Fact::to_string).collect();
                format!("{fate} {place} because {}", facts.join(" and "))
            }
        }
    }

    /// `at firewall.bpf.c:88`, or the instruction where the object has no lines.
    #[must_use]
    pub fn place(&self, at: At) -> String {
        match (self.line(at), self.programs.get(at.program)) {
            (Some(line), _) => {
                let file = line.file.rsplit('/').next().unwrap_or(&line.file);
                format!("at {file}:{}", line.line)
            }
            (None, Some(program)) => format!("at instruction {} of {}", at.slot, program.name),
            (None, None) => "before the first instruction".to_owned(),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, value } = self;
        let verb = if *kind == FactKind::Result { "returned" } else { "is" };
        write!(f, "{name} {verb} {value}")
    }
}

/// The verdict as a verb.
fn fate(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Aborted => "aborted",
        Verdict::Drop => "dropped",
        Verdict::Pass => "passed",
        Verdict::Tx => "sent back",
        Verdict::Redirect => "redirected",
    }
}
