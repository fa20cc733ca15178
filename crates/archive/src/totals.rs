//! Counts of packets, and losses.

use paceline::capture::Lost;
use paceline::filter::Matched;

/// Counts of a part, a capture or a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that were read.
    pub read: Matched,
    /// Packets that match the filter.
    pub matched: Matched,
    /// Packets of each verdict of the program, in the order of `Verdict::ALL`.
    pub verdicts: [u64; 5],
    /// Bytes that gave no packets, by rising offset; in compressed captures an offset is that of the decompressed bytes.
    pub lost: Vec<Lost>,
}

impl Totals {
    /// Adds the counts of a later part.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in [(&mut self.read, &other.read), (&mut self.matched, &other.matched)] {
            sum.packets += count.packets;
            sum.bytes += count.bytes;
        }
        self.verdicts.iter_mut().zip(other.verdicts).for_each(|(sum, count)| *sum += count);
        self.lost.extend_from_slice(&other.lost);
    }
}

/// Counts of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts of each capture.
    pub captures: Vec<Totals>,
    /// Whether it was ended before all was read.
    pub interrupted: bool,
}

impl Report {
    /// Counts of all captures together.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        self.captures.iter().for_each(|totals| sum.add(totals));
        sum
    }
}
