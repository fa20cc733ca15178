//! Counts of a run.

use paceline_frame::{FrameRef, Verdict};

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that got a verdict.
    pub packets: u64,
    /// Their bytes as captured, before the program.
    pub bytes: u64,
    /// Packets per verdict, in the order of [`Verdict::ALL`].
    pub verdicts: [u64; 5],
    /// Packets whose program returned an invalid verdict; they count as aborted too.
    pub unknown: u64,
}

impl Tally {
    /// Packets that got a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Adds other counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.unknown += other.unknown;
        self.verdicts.iter_mut().zip(other.verdicts).for_each(|(sum, count)| *sum += count);
    }

    /// Counts a packet that had so many bytes before the program.
    pub(super) fn count_frame(&mut self, frame: FrameRef<'_>, before: u64) {
        self.count(frame.verdict(), Verdict::from_code(frame.code()).is_none(), before);
    }

    pub(super) fn count(&mut self, verdict: Verdict, is_unknown: bool, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.verdicts[verdict as usize] += 1;
        self.unknown += u64::from(is_unknown);
    }
}
