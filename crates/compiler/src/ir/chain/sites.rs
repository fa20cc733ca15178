//! How deep in a program its returns are: what comes after many branches has looked at more of the packet than what comes after few.

use crate::ir::cfg::{Cfg, Dominators};
use crate::ir::entity::Block;
use crate::ir::function::{Function, Terminator};

/// A block that returns a known result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) block: Block,
    pub(super) result: u64,
    /// Number of branches that dominate it.
    pub(super) depth: u32,
}

pub(super) struct Depths<'f> {
    function: &'f Function,
    cfg: Cfg,
    /// By position.
    depths: Vec<u32>,
}

impl<'f> Depths<'f> {
    pub(super) fn of(function: &'f Function) -> Self {
        let cfg = Cfg::of(function);
        let tree = Dominators::of(&cfg);
        let mut depths = vec![0; cfg.order().len()];
        for position in 1..depths.len() {
            let parent = tree.parent(position as u32) as usize;
            let branches = cfg
                .order()
                .get(parent)
                .map_or(0, |block| u32::from(function.block(*block).terminator.targets().len() > 1));
            depths[position] = depths[parent] + branches;
        }
        Self { function, cfg, depths }
    }

    pub(super) fn sites(&self) -> Vec<Site> {
        let blocks = self.cfg.order().iter().zip(&self.depths);
        let of_block = |(block, depth): (&Block, &u32)| {
            let Terminator::Return(result) = self.function.block(*block).terminator else { return None };
            Some(Site { block: *block, result: self.function.as_const(result)?, depth: *depth })
        };
        blocks.filter_map(of_block).collect()
    }
}

/// The depth from which returns count as deep among these; `None` if they are about the same.
pub(super) fn deep_from(depths: impl Iterator<Item = u32>) -> Option<u32> {
    let (least, greatest) =
        depths.fold((u32::MAX, 0), |(least, greatest), depth| (least.min(depth), greatest.max(depth)));
    (least < greatest).then(|| least + (greatest - least).div_ceil(2))
}
