//! State of a chain.

use std::sync::Arc;

use paceline_maps::Map;
use paceline_runtime::interpreter::image::BurstEntry;
use paceline_runtime::per_cpu::PerCpuMaps;
use paceline_spec::graph::Graph;

#[cfg(feature = "jit")]
use super::fused::Fused;
use crate::program::Program;
use crate::target::Named;

/// State that all handles of a chain share. Its address is the token.
pub(super) struct Shared {
    pub(super) graph: Graph,
    /// Entry of bursts.
    pub(super) entry: BurstEntry,
    /// Whether runs are pinned, because others may remove programs or elements of maps that a program uses.
    pub(super) pins: bool,
    /// The per-CPU maps of all programs.
    pub(super) per_cpu: PerCpuMaps,
    /// The programs by node, if they are called; empty if they are compiled to one function.
    pub(super) programs: Box<[Program]>,
    /// The code of that function.
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
