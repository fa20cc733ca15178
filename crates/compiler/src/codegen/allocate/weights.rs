//! Spill weights of virtual registers.
//!
//! A weight is the number of uses, eight times for each loop, by the length of life; it is computed when a function needs more
//! registers than there are.

use super::live_ranges::LiveRanges;
use crate::codegen::lir::Function;

/// How often a block is likely to run, by the number of loops that it is in.
const fn frequency(depth: u32) -> f32 {
    let depth = if depth < 8 { depth } else { 8 };
    (1_u32 << (3 * depth)) as f32
}

/// By virtual register: uses and definitions, each by how often it is likely to run, per point in its segments.
pub(super) fn weights<O>(function: &Function<O>, ranges: &LiveRanges) -> Vec<f32> {
    let mut weights = vec![0.0; function.vregs as usize];
    for block in &function.blocks {
        let cost = frequency(block.depth);
        let mut add = |vreg: u32| weights[vreg as usize] += cost;
        function.params_of(block).iter().for_each(|param| add(param.0));
        let insts = &function.insts[block.insts.start as usize..block.insts.end as usize];
        let ends = [insts.first(), insts.last()].map(|inst| inst.map_or(0..0, |inst| inst.operands.clone()));
        let operands = &function.operands[ends[0].start as usize..ends[1].end as usize];
        operands.iter().for_each(|operand| add(operand.vreg.0));
        let targets = function.targets_of(block).iter();
        targets.flat_map(|target| function.args_of(target)).for_each(|arg| add(arg.0));
    }
    for &(_, vreg) in &ranges.order {
        let length: u32 = ranges.segments_of(vreg).iter().map(|segment| segment.end - segment.start).sum();
        weights[vreg as usize] /= length.max(1) as f32;
    }
    weights
}
