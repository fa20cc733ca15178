//! The same function with small numbers.

use crate::ir::arena::Side;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{BlockData, Def, Function, InstData, ValueData};

/// A copy in which the blocks and values of the layout have the numbers from 0 on, in the order of their definitions.
pub(super) fn compact(function: &Function) -> Function {
    let mut out = Function {
        name: function.name.clone(),
        arguments: function.arguments.clone(),
        slot: function.slot,
        stack: function.stack,
        zeroed: function.zeroed,
        shared: function.shared,
        prints: function.prints,
        is_callback: function.is_callback,
        ..Function::default()
    };
    let mut blocks: Side<Block, Option<Block>> = Side::default();
    let mut values: Side<Value, Option<Value>> = Side::default();
    for &block in &function.layout {
        let made = out.add_block();
        blocks[block] = Some(made);
        let data = function.block(block);
        for &param in &data.params {
            let data = ValueData { def: Def::Param(made), ..*function.value(param) };
            values[param] = Some(out.values.push(data));
        }
        for &inst in &data.insts {
            let data = *function.inst(inst);
            let copy = out.insts.push(data);
            out.block_mut(made).insts.push(copy);
            if let Some(result) = data.result {
                let data = ValueData { def: Def::Result(copy), ..*function.value(result) };
                values[result] = Some(out.values.push(data));
            }
        }
    }
    let value = |old: Value| values[old].unwrap_or(old);
    for &block in &function.layout {
        let (data, made) = (function.block(block), blocks[block].unwrap_or(block));
        let copies = std::mem::take(&mut out.block_mut(made).insts);
        for (&inst, &copy) in data.insts.iter().zip(&copies) {
            let InstData { op, result, slot } = *function.inst(inst);
            out.insts[copy] = InstData { op: op.map_operands(value), result: result.map(value), slot };
            if function.calls[inst] != Default::default() {
                out.calls[copy] = function.calls[inst];
            }
        }
        let mut terminator = data.terminator.clone();
        terminator.map_values(value);
        for target in terminator.targets_mut() {
            target.block = blocks[target.block].unwrap_or(target.block);
        }
        let params = data.params.iter().map(|param| value(*param)).collect();
        *out.block_mut(made) = BlockData { params, insts: copies, terminator, slot: data.slot };
    }
    out
}
