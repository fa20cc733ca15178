//! State of a chain.

use std::sync::Arc;

use paceline_graph::Graph;
use paceline_interpreter::image::BurstEntry;
use paceline_maps::Map;

#[cfg(feature = "jit")]
use super::fused::Fused;
use crate::program::Program;
use crate::target::Named;

/// State that all handles of a chain share. Its address is the token.
pub(super) struct Shared {
    pub(super) graph: Graph,
    /// Where bursts enter.
    pub(super) entry: BurstEntry,
    /// The same where what programs return is counted.
    pub(super) counted_entry: BurstEntry,
    /// Whether a program can come to others, or to elements of maps, that may be taken away meanwhile.
    pub(super) pins: bool,
    /// The programs, by node, where they are called; empty in native code that has all of them in it.
    pub(super) programs: Box<[Program]>,
    /// That code.
    #[cfg(feature = "jit")]
    pub(super) fused: Option<Fused>,
}

impl Named for Shared {
    fn name(&self) -> &str {
        "chain"
    }

    fn maps(&self) -> Vec<Arc<Map>> {
        let maps = self.programs.iter().flat_map(Program::maps);
        #[cfg(feature = "jit")]
        let maps = maps.chain(self.fused.iter().flat_map(Fused::maps));
        maps.cloned().collect()
    }
}
