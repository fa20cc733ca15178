//! A packet and its explanation.

use paceline::explain::ChainExplanation;

/// A packet with its explanation.
pub(super) struct Explained {
    /// From 1.
    pub(super) number: u64,
    /// Its bytes as it came in.
    pub(super) bytes: Vec<u8>,
    pub(super) explanation: ChainExplanation,
}
