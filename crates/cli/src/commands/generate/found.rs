//! A program's generated inputs, in the order in which they are written.

use std::collections::BTreeSet;
use std::time::Duration;

use paceline::ProgramSpec;
use paceline::generate::{Confirmed, Generated, Side};

/// A program with what was generated for it.
pub(super) struct Found {
    pub(super) program: ProgramSpec,
    pub(super) generated: Generated,
    pub(super) time: Duration,
}

impl Found {
    /// The inputs that are written, the smallest first: one for each side that no smaller one takes.
    pub(super) fn inputs(&self) -> Vec<(Side, &Confirmed)> {
        let mut all: Vec<_> =
            self.generated.reached.iter().map(|(side, confirmed)| (*side, confirmed)).collect();
        let size = |confirmed: &Confirmed| {
            let elements: usize = confirmed.input.maps.values().map(Vec::len).sum();
            (elements, confirmed.input.packet.len())
        };
        all.sort_by_key(|(side, confirmed)| (size(confirmed), *side));
        let mut taken = BTreeSet::new();
        all.retain(|(side, confirmed)| {
            let is_new = !taken.contains(side);
            if is_new {
                taken.extend(confirmed.sides.iter().copied());
            }
            is_new
        });
        all
    }

    /// File and line of a slot, such as `firewall.bpf.c:181`.
    pub(super) fn place(&self, slot: usize) -> String {
        match self.program.line_of(slot).filter(|line| line.line > 0) {
            Some(line) => format!("{}:{}", file_name(&line.file), line.line),
            None => format!("{}+{slot}", self.program.name),
        }
    }

    /// The text of the source line of a slot.
    pub(super) fn text(&self, slot: usize) -> &str {
        self.program.line_of(slot).map_or("", |line| line.text.trim())
    }

    /// A side in words: its place, and which side it is.
    pub(super) fn side(&self, side: Side) -> String {
        let way = if side.taken { "jumps" } else { "goes on" };
        format!("{}, slot {} {way}", self.place(side.slot), side.slot)
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
