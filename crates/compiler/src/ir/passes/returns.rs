//! Returns: a block that only jumps to a return returns itself, and branches to returns of the same number have one block in common. So
//! a number that is returned is no argument, and the code of a short return is where it is reached.

use std::collections::BTreeMap;

use crate::ir::analyses::Analyses;
use crate::ir::cfg::Edge;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::op::Op;
use crate::ir::params::prune;
use crate::ir::types::Type;

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let cfg = analyses.cfg(function);
    let (mut known, mut changed) = (BTreeMap::new(), false);
    // Later blocks come first: what jumps to a return may then be one itself.
    for &block in cfg.order().iter().skip(1).rev() {
        let Some(value) = returned(function, block) else { continue };
        for &edge in cfg.edges(block) {
            redirect(function, edge, block, value, &mut known);
            changed = true;
        }
    }
    if changed {
        analyses.graph_changed();
    }
    prune(function, &analyses.cfg(function));
}

/// The value that a block returns, if that is all it does.
pub(super) fn returned(function: &Function, block: Block) -> Option<Value> {
    let data = function.block(block);
    match data.terminator {
        Terminator::Return(value)
            if data.insts.iter().all(|inst| matches!(function.inst(*inst).op, Op::Const { .. })) =>
        {
            Some(value)
        }
        _ => None,
    }
}

/// Makes the block at the start of an edge a return, or lets it branch to one without parameters.
fn redirect(
    function: &mut Function,
    Edge { from, at }: Edge,
    block: Block,
    value: Value,
    known: &mut BTreeMap<u64, Block>,
) {
    let target = &function.block(from).terminator.targets()[at];
    let data = function.block(block);
    let (has_params, slot) = (!data.params.is_empty(), data.slot);
    let has_number = data.insts.iter().any(|inst| function.inst(*inst).result == Some(value));
    let param = data.params.iter().position(|param| *param == value);
    let given = param.map_or(value, |param| target.args[param]);
    let number = function.as_const(given);
    if matches!(function.block(from).terminator, Terminator::Jump(_)) {
        return end(function, from, given, number, slot);
    }
    let other = match number.and_then(|number| known.get(&number)) {
        Some(other) => *other,
        None if has_params => {
            let other = function.add_block();
            end(function, other, given, number, slot);
            other
        }
        None => {
            // Others that return the number may not have its value.
            if number.is_some() && !has_number {
                end(function, block, given, number, slot);
            }
            block
        }
    };
    number.map(|number| known.insert(number, other));
    function.block_mut(from).terminator.targets_mut()[at] = Target::to(other);
}

/// Makes a block return a value, or a number, for which it has an instruction of its own.
fn end(function: &mut Function, block: Block, value: Value, number: Option<u64>, slot: Option<u32>) {
    let returned = match number {
        Some(number) => function.append_value(block, Op::constant(Type::I64, number), slot),
        None => value,
    };
    function.terminate(block, Terminator::Return(returned), slot);
}
