//! Comparison of what became of a packet.

use paceline::packet::{Difference, differences};

use super::ignored::Ignored;
use super::side::Fate;

/// How a packet fared differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// `drop -> pass`, `bytes`, `redirect`: what a group is named by.
    pub(crate) what: Vec<String>,
    /// The fields of the packet that differ, if packets are compared.
    pub(crate) fields: Vec<Difference>,
}

/// The differences that are not ignored; `None` if there are none.
pub(crate) fn compare([old, new]: &[Fate; 2], ignored: &[Ignored]) -> Option<Change> {
    let counts = |what: &Ignored| !ignored.contains(what);
    let mut change = Change { what: Vec::new(), fields: Vec::new() };
    if old.verdict != new.verdict && counts(&Ignored::Verdict) {
        change.what.push(format!("{} -> {}", old.verdict.name(), new.verdict.name()));
    }
    if old.redirect != new.redirect && counts(&Ignored::Redirect) {
        let name = |target: &Option<String>| target.clone().unwrap_or_else(|| "no redirect".to_owned());
        change.what.push(format!("{} -> {}", name(&old.redirect), name(&new.redirect)));
    }
    // The bytes of packets without a receiver are not compared.
    let goes_on = |fate: &Fate| !matches!(fate.verdict, paceline::Verdict::Drop | paceline::Verdict::Aborted);
    if old.bytes != new.bytes && counts(&Ignored::Bytes) && (goes_on(old) || goes_on(new)) {
        let is_ignored = |field: &Difference| ignored.contains(&Ignored::Field(field.name.clone()));
        change.fields = differences(&old.bytes, &new.bytes);
        change.fields.retain(|field| !is_ignored(field));
        if !change.fields.is_empty() {
            let names: Vec<_> = change.fields.iter().map(|field| field.name.as_str()).collect();
            change.what.push(format!("packet: {}", brief(&names)));
        }
    }
    if old.events != new.events && counts(&Ignored::Events) {
        change.what.push(format!("events: {} -> {}", old.events.len(), new.events.len()));
    }
    (!change.what.is_empty()).then_some(change)
}

/// Most names of fields in a group's name.
const NAMES: usize = 6;

fn brief(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
