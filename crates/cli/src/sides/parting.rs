//! The place at which two runs went different ways.

use paceline::LineInfo;
use paceline::explain::{ChainExplanation, Event, Explanation};

/// The last line that both runs have in common, and the next line of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parting {
    /// In the old and in the new source.
    pub(crate) last: Option<(String, String)>,
    /// Text of the last common line.
    pub(crate) text: String,
    pub(crate) next: [Option<String>; 2],
}

/// Where two runs parted; `None` if they ran the same lines, or have none.
pub(crate) fn parting(old: &ChainExplanation, new: &ChainExplanation) -> Option<Parting> {
    let (old, new) = (lines(old), lines(new));
    // Lines have other numbers in another version: equal texts are the same line.
    let is_same = |(a, b): &(&LineInfo, &LineInfo)| a.text.trim() == b.text.trim();
    let same = old.iter().copied().zip(new.iter().copied()).take_while(is_same).count();
    if same == old.len() && same == new.len() {
        return None;
    }
    let last = same.checked_sub(1).and_then(|last| Some((*old.get(last)?, *new.get(last)?)));
    Some(Parting {
        last: last.map(|(old, new)| (place(old), place(new))),
        text: last.map_or_else(String::new, |(old, _)| old.text.trim().to_owned()),
        next: [old.get(same), new.get(same)].map(|line| line.map(|line| place(line))),
    })
}

fn lines(explanation: &ChainExplanation) -> Vec<&LineInfo> {
    explanation.steps.iter().flat_map(|(_, step, _)| lines_of(step)).collect()
}

fn lines_of(explanation: &Explanation) -> impl Iterator<Item = &LineInfo> {
    explanation.events.iter().filter_map(|event| match event {
        Event::Line(at) => explanation.line(*at),
        _ => None,
    })
}

/// `firewall.bpf.c:88`
fn place(line: &LineInfo) -> String {
    let file = line.file.rsplit('/').next().unwrap_or(&line.file);
    format!("{file}:{}", line.line)
}
