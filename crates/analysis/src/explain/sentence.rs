//! An explanation in one sentence.

use std::fmt;

use paceline_frame::Verdict;

use crate::explain::trace::{At, Cause, CauseKind, Explanation, Fact, FactKind};

impl Explanation {
    /// One sentence: `dropped at firewall.bpf.c:88 because rules[{port: 22}].action is 1`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let fate = self.fate();
        if let Some(fault) = &self.outcome.fault {
            return format!("{fate} {}: {}", self.place(self.end), fault.kind);
        }
        let Some(cause) = self.cause() else {
            let place = self.place(self.end);
            return match self.is_known {
                true => format!("{fate} {place}, whatever the branches"),
                false => format!("{fate} {place}; which branch decided is not known"),
            };
        };
        let place = self.place_of(cause);
        match (self.reason(cause), self.line(cause.at)) {
            (Some(reason), _) => format!("{fate} {place} because {reason}"),
            (None, Some(line)) if cause.after.is_none() => {
                format!("{fate} {place} by `{}`", line.text.trim())
            }
            (None, _) => format!("{fate} {place}"),
        }
    }

    /// The sentence without values: `dropped at firewall.bpf.c:280 because of ipv4.len and the packet's length`.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(cause) = self.cause().filter(|_| self.outcome.fault.is_none()) else {
            return self.sentence();
        };
        let facts = if cause.facts.is_empty() { &cause.variables } else { &cause.facts };
        let mut names: Vec<_> = facts.iter().map(Fact::without_value).collect();
        names.dedup();
        let names = names.join(" and ");
        let reason = match &cause.kind {
            CauseKind::TailCall { entry, .. } => {
                format!(" because of {} for {names}", entry.split('[').next().unwrap_or(entry))
            }
            _ if names.is_empty() => return self.sentence(),
            _ => format!(" because of {names}"),
        };
        format!("{} {}{reason}", self.fate(), self.place_of(cause))
    }

    /// What became of the packet: `dropped`, `redirected to interface 3`.
    fn fate(&self) -> String {
        let to = self.target.as_ref().map_or_else(String::new, |target| format!(" to {target}"));
        format!("{}{to}", fate(self.outcome.verdict))
    }

    /// What a decision depended on: `eth.type is arp`; `None` if it has no name.
    #[must_use]
    pub fn reason(&self, cause: &Cause) -> Option<String> {
        let facts = if cause.facts.is_empty() { &cause.variables } else { &cause.facts };
        let all = facts.iter().map(Fact::to_string).collect::<Vec<_>>().join(" and ");
        let given: Vec<_> = facts.iter().map(|fact| format!("{} {}", fact.name, fact.value)).collect();
        let given = if given.is_empty() { String::new() } else { format!(" for {}", given.join(" and ")) };
        match &cause.kind {
            CauseKind::TailCall { entry, is_there: true } => Some(format!("{entry} was called{given}")),
            CauseKind::TailCall { entry, is_there: false } => Some(format!("{entry} has no program{given}")),
            _ if all.is_empty() => None,
            _ => Some(all),
        }
    }

    /// `at firewall.bpf.c:88`; `after firewall.bpf.c:88` where the instruction that decided has no line.
    #[must_use]
    pub fn place_of(&self, cause: &Cause) -> String {
        match cause.after {
            Some(after) => self.place(after).replacen("at ", "after ", 1),
            None => self.place(cause.at),
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

impl Fact {
    /// The name without the key of an element: `rules[..].action`; and whether an element is there.
    fn without_value(&self) -> String {
        let name = match (self.kind, self.name.find('['), self.name.rfind(']')) {
            (FactKind::Element | FactKind::Value, Some(start), Some(end)) if start < end => {
                format!("{}[..{}", &self.name[..start], &self.name[end..])
            }
            _ => self.name.clone(),
        };
        if self.kind == FactKind::Element { format!("{name}, {}", self.value) } else { name }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, value, not } = self;
        let verb = if *kind == FactKind::Result { "returned" } else { "is" };
        write!(f, "{name} {verb} {value}")?;
        match not.as_slice() {
            [] => Ok(()),
            [only] => write!(f, ", not {only}"),
            [first, others @ ..] => write!(f, ", neither {first} nor {}", others.join(" nor ")),
        }
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
