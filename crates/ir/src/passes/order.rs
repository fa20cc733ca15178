//! The order of blocks in code: that of the program, which is a compiler's choice, as far as each block comes after those that dominate
//! it. A block that only returns comes right behind the last block that goes there if its branch is not taken, and otherwise last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::returns::returned;
use crate::arena::Side;
use crate::cfg::{Cfg, Dominators};
use crate::entity::Block;
use crate::function::Function;

pub(super) fn run(function: &mut Function) {
    let cfg = Cfg::of(function);
    let order = of_program(function, &cfg);
    let mut layout = Vec::with_capacity(function.layout.len());
    let (mut is_return, mut last): (Side<Block, bool>, Side<Block, Option<Block>>) = Default::default();
    // The entry stays in front.
    order.iter().skip(1).for_each(|block| is_return[*block] = returned(function, *block).is_some());
    let other = |block: Block| {
        let last = function.block(block).terminator.targets().last();
        last.map(|target| target.block).filter(|target| is_return[*target] && !is_return[block])
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

/// The reached blocks in the order of their slots, each after its dominators.
fn of_program(function: &Function, cfg: &Cfg) -> Vec<Block> {
    let tree = Dominators::of(cfg);
    let mut order = Vec::with_capacity(cfg.order().len());
    let mut ready = BinaryHeap::new();
    ready.extend((!cfg.order().is_empty()).then_some(Reverse((0, 0))));
    while let Some(Reverse((slot, position))) = ready.pop() {
        order.push(cfg.order()[position as usize]);
        for &child in tree.children(position) {
            let own = slot_of(function, cfg.order()[child as usize]);
            ready.push(Reverse((own.unwrap_or(slot), child)));
        }
    }
    order
}

/// The slot of a block's first instruction that has one.
fn slot_of(function: &Function, block: Block) -> Option<u32> {
    let data = function.block(block);
    data.insts.iter().find_map(|inst| function.inst(*inst).slot).or(data.slot)
}
