//! State that the programs and maps of a collection share.

use std::sync::Arc;

use paceline::Collection;

use crate::coverage::Watched;
use crate::worker::Workers;

/// A collection with the workers that run its programs.
pub(crate) struct Shared {
    pub(crate) collection: Collection,
    /// The object's file, for messages.
    pub(crate) file: Option<String>,
    pub(crate) workers: Workers,
    /// Whether programs are verified.
    pub(crate) verifies: bool,
    /// Keeps the counts of its coverage when it goes.
    pub(crate) _counts: Option<Arc<Watched>>,
}
