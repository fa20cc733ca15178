//! Reasons of many packets, counted.

use std::collections::HashMap;
use std::sync::Arc;

use paceline_frame::Verdict;

use crate::explain::chain::ChainExplanation;

/// A reason that packets have in common: the decision was at one place, about the same fields or maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Verdict.
    pub verdict: Verdict,
    /// Packets.
    pub packets: u64,
    /// Number of the first one, as the caller counts.
    pub first: u64,
    /// The sentence of all of them, or what their sentences have in common.
    pub sentence: String,
    /// File and number of the line that decided, where the object has lines.
    pub line: Option<(Arc<str>, u32)>,
    /// Whether all have the same values.
    is_exact: bool,
}

/// Counts reasons.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    by_summary: HashMap<(Verdict, String), Reason>,
}

impl Reasons {
    /// Counts a packet.
    pub fn add(&mut self, packet: u64, explanation: &ChainExplanation) {
        let (verdict, sentence) = (explanation.outcome.verdict, explanation.sentence());
        let summary = explanation.summary();
        let reason = self.by_summary.entry((verdict, summary)).or_insert_with_key(|_| {
            let last = explanation.steps.last().map(|(_, last, _)| last);
            let line = last.and_then(|last| last.line(last.decided_at()));
            let line = line.map(|line| (Arc::clone(&line.file), line.line));
            Reason { verdict, packets: 0, first: packet, sentence: sentence.clone(), line, is_exact: true }
        });
        reason.packets += 1;
        if reason.is_exact && reason.sentence != sentence {
            reason.is_exact = false;
            reason.sentence = explanation.summary();
        }
    }

    /// The reasons, those of most packets first.
    #[must_use]
    pub fn rows(&self) -> Vec<&Reason> {
        let mut rows: Vec<_> = self.by_summary.values().collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.packets), row.first));
        rows
    }
}
