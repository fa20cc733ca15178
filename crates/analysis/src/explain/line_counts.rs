//! Instructions by source line.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_engine::Observed;

/// How many instructions of each source line ran. What has no line is counted apart.
#[derive(Clone, Debug, Default)]
pub struct LineCounts {
    /// By file and number of the line.
    pub lines: BTreeMap<(Arc<str>, u32), LineCount>,
    /// Instructions without a line.
    pub others: u64,
}

/// Instructions of a line.
#[derive(Clone, Debug)]
pub struct LineCount {
    /// Text of the line.
    pub text: Arc<str>,
    /// Instructions that ran.
    pub instructions: u64,
}

impl LineCounts {
    /// All instructions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.others + self.lines.values().map(|line| line.instructions).sum::<u64>()
    }

    pub(crate) fn see(&mut self, observed: &Observed<'_>) {
        let lines = &observed.program().lines;
        let entry = lines.partition_point(|line| line.slot <= observed.slot).checked_sub(1);
        match entry.and_then(|entry| lines.get(entry)).filter(|line| line.line > 0) {
            None => self.others += 1,
            Some(line) => {
                let key = (Arc::clone(&line.file), line.line);
                let new = || LineCount { text: Arc::clone(&line.text), instructions: 0 };
                self.lines.entry(key).or_insert_with(new).instructions += 1;
            }
        }
    }
}
