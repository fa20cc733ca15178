//! The order of blocks in code: reverse post-order, in which the blocks of a loop follow each other, and blocks that return come last. An
//! edge with arguments has a block of its own unless it is the only one from or to its ends: that is where the arguments move.

use crate::analyses::Analyses;
use crate::arena::Side;
use crate::cfg::{Cfg, Edge};
use crate::entity::Block;
use crate::function::{Function, Target, Terminator};
use crate::loops::Loops;

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    if split(function, &analyses.cfg(function)) {
        analyses.graph_changed();
    }
    let cfg = analyses.cfg(function);
    let loops = Loops::of(&cfg, &analyses.dominators(function));
    let order = contiguous(&cfg, &loops);
    let returns = |block: &Block| matches!(function.block(*block).terminator, Terminator::Return(_));
    let (last, first): (Vec<Block>, Vec<Block>) =
        order.iter().map(|position| cfg.order()[*position as usize]).partition(returns);
    // The entry stays in front, and blocks that are not reached stay for who removes them.
    let is_reached = |block: &Block| cfg.position(*block).is_some();
    let rest: Vec<Block> = function.layout.iter().copied().filter(|block| !is_reached(block)).collect();
    let mut layout = first;
    layout.extend(last);
    layout.extend(rest);
    if let Some(at) = layout.iter().position(|block| Some(*block) == function.entry()) {
        layout[..=at].rotate_right(1);
    }
    function.layout = layout;
}

/// Gives edges with arguments that lead from a block with several successors to one with several predecessors a block of their own.
/// Returns whether there were any.
fn split(function: &mut Function, cfg: &Cfg) -> bool {
    let mut critical: Vec<Edge> = Vec::new();
    for &block in cfg.order() {
        if cfg.edges(block).len() > 1 {
            let is_critical = |edge: &&Edge| {
                let targets = function.block(edge.from).terminator.targets();
                targets.len() > 1 && targets.get(edge.at).is_some_and(|target| !target.args.is_empty())
            };
            critical.extend(cfg.edges(block).iter().filter(is_critical));
        }
    }
    let any = !critical.is_empty();
    for Edge { from, at } in critical {
        let (middle, slot) = (function.add_block(), function.block(from).slot);
        if let Some(target) = function.block_mut(from).terminator.targets_mut().get_mut(at) {
            let target = std::mem::replace(target, Target::to(middle));
            function.terminate(middle, Terminator::Jump(target), slot);
        }
    }
    any
}

/// Positions of the blocks, each loop where its head is.
fn contiguous(cfg: &Cfg, loops: &Loops) -> Vec<u32> {
    let count = cfg.order().len() as u32;
    // What is in each loop, and at last in none: blocks, and the heads of inner loops, which stand for these.
    let mut inside: Vec<Vec<u32>> = vec![Vec::new(); count as usize + 1];
    for position in 0..count {
        let around = match loops.head(position) {
            Some(head) if head == position => loops.outer(head),
            head => head,
        };
        inside[around.unwrap_or(count) as usize].push(position);
    }
    let mut order = Vec::with_capacity(count as usize);
    let mut work: Vec<u32> = inside[count as usize].iter().rev().copied().collect();
    let mut seen: Side<Block, bool> = Side::default();
    while let Some(position) = work.pop() {
        if !std::mem::replace(&mut seen[cfg.order()[position as usize]], true) {
            order.push(position);
            work.extend(inside[position as usize].iter().rev());
        }
    }
    order
}
