//! Comparison of what became of a packet.

use paceline::packet::{Difference, differences};
use paceline::{Outcome, SkBuff, SkBuffMember, Verdict};

use super::ignored::Ignored;
use super::side::Fate;
use crate::common::outcome::returned;

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
    let (before, after) = (&old.outcome, &new.outcome);
    if before.verdict != after.verdict {
        if counts(&Ignored::Verdict) {
            change.what.push(format!("{} -> {}", before.verdict.name(), after.verdict.name()));
        }
    } else if before.returned != after.returned && counts(&Ignored::Returns) {
        let [before, after] = [old, new].map(|fate| returned(fate.outcome.returned, fate.ran));
        change.what.push(format!("returns {before} -> {after}"));
    }
    if old.redirect != new.redirect && counts(&Ignored::Redirect) {
        let name = |target: &Option<String>| target.clone().unwrap_or_else(|| "no redirect".to_owned());
        change.what.push(format!("{} -> {}", name(&old.redirect), name(&new.redirect)));
    }
    // The bytes of packets without a receiver are not compared.
    let goes_on = |outcome: &Outcome| !matches!(outcome.verdict, Verdict::Drop | Verdict::Aborted);
    let is_received = goes_on(before) || goes_on(after);
    if before.bytes != after.bytes && counts(&Ignored::Bytes) && is_received {
        let is_ignored = |field: &Difference| ignored.contains(&Ignored::Field(field.name.clone()));
        change.fields = differences(&before.bytes, &after.bytes);
        change.fields.retain(|field| !is_ignored(field));
        if !change.fields.is_empty() {
            let names: Vec<_> = change.fields.iter().map(|field| field.name.as_str()).collect();
            change.what.push(format!("packet: {}", brief(&names)));
        }
    }
    if before.metadata != after.metadata && counts(&Ignored::Metadata) && is_received {
        change.what.push("metadata".to_owned());
    }
    if let (Some(before), Some(after)) = (&before.context, &after.context)
        && is_received
    {
        change.what.extend(context(before, after, ignored));
    }
    if old.events != new.events && counts(&Ignored::Events) {
        change.what.push(format!("events: {} -> {}", old.events.len(), new.events.len()));
    }
    (!change.what.is_empty()).then_some(change)
}

/// The members of the `sk_buff` that differ.
fn context(old: &SkBuff, new: &SkBuff, ignored: &[Ignored]) -> Vec<String> {
    let differing = |member: &&SkBuffMember| member.of(old) != member.of(new);
    let counts = |member: &&SkBuffMember| {
        ignored.iter().all(|what| match what {
            Ignored::Context => false,
            Ignored::Member(name) => name != member.name,
            _ => true,
        })
    };
    let text = |member: &SkBuffMember| format!("{}: {} -> {}", member.name, member.of(old), member.of(new));
    SkBuffMember::ALL.iter().filter(differing).filter(counts).map(text).collect()
}

/// Most names of fields in a group's name.
const NAMES: usize = 6;

fn brief(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
