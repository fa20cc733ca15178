//! The order of blocks in code: that of the program, which is a compiler's choice, as far as each block comes after those that dominate
//! it; blocks that passes added come where they are reached. A block that only returns comes right behind the last block that goes there if
//! its branch is not taken, and otherwise last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::returns::returned;
use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Dominators};
use crate::ir::entity::Block;
use crate::ir::function::{Function, Terminator};

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let cfg = analyses.cfg(function);
    let order = of_program(function, &cfg, &analyses.dominators(function));
    let mut layout = Vec::with_capacity(function.layout.len());
    let count = function.block_count();
    let mut is_return: Side<Block, bool> = Side::sized(count);
    let mut last: Side<Block, Option<Block>> = Side::sized(count);
    // The entry stays in front.
    let ends = |block: Block| {
        function.block(block).terminator == Terminator::Stop || returned(function, block).is_some()
    };
    order.iter().skip(1).for_each(|block| is_return[*block] = ends(*block));
    let other = |block: Block| {
        let last = function.block(block).terminator.targets().last();
        let stops = |target: &Block| function.block(*target).terminator == Terminator::Stop;
        let next = last.map(|target| target.block).filter(|target| is_return[*target] && !is_return[block]);
        next.filter(|target| !stops(target))
    };
    for &block in &order {
        if let Some(next) = other(block) {
            last[next] = Some(block);
        }
    }
    for &block in order.iter().filter(|block| !is_return[**block]) {
        layout.push(block);
        layout.extend(other(block).filter(|next| last[*next] == Some(block)));
    }
    layout.extend(order.iter().filter(|block| is_return[**block] && last[**block].is_none()));
    // Blocks that are not reached stay for who removes them.
    layout.extend(function.layout.iter().filter(|block| cfg.position(**block).is_none()));
    function.layout = layout;
}

/// The reached blocks in the order of the layout, each after its dominators. Blocks without a slot come with those that lead to them.
fn of_program(function: &Function, cfg: &Cfg, tree: &Dominators) -> Vec<Block> {
    let mut places: Side<Block, usize> = Side::sized(function.block_count());
    function.layout.iter().enumerate().for_each(|(place, block)| places[*block] = place);
    let mut order = Vec::with_capacity(cfg.order().len());
    let mut ready = BinaryHeap::new();
    ready.extend((!cfg.order().is_empty()).then_some(Reverse((0, 0))));
    while let Some(Reverse((place, position))) = ready.pop() {
        order.push(cfg.order()[position as usize]);
        for &child in tree.children(position) {
            let block = cfg.order()[child as usize];
            let own = if has_slot(function, block) { places[block] } else { place };
            ready.push(Reverse((own, child)));
        }
    }
    order
}

/// Whether a block is made of instructions of the program.
fn has_slot(function: &Function, block: Block) -> bool {
    let data = function.block(block);
    data.slot.is_some() || data.insts.iter().any(|inst| function.inst(*inst).slot.is_some())
}
