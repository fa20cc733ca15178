//! Copies of functions in others.

use std::cell::Cell;

use paceline_isa::Size;

use crate::ir::arena::Side;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, InstData};
use crate::ir::op::Op;
use crate::ir::types::{Access, CallFacts, Kind, Region, Span, Type};

/// What the parts of a function become in its copy.
pub(crate) trait Relocation {
    /// Why there is no copy.
    type Error;

    /// Changes an operation of the function, whose operands stay as they are.
    fn op(&self, op: &mut Op) -> Result<(), Self::Error>;

    /// Facts of a call.
    fn facts(&self, facts: &CallFacts) -> CallFacts;

    /// The slot of an instruction.
    fn slot(&self, slot: u32) -> u32;

    /// A value or block is used and not defined.
    fn undefined(&self, what: Undefined) -> Self::Error;
}

/// What a function uses and does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undefined {
    Value(Value),
    Block(Block),
}

/// The values and blocks of a copy by those of the function.
struct Names {
    values: Side<Value, Option<Value>>,
    blocks: Side<Block, Option<Block>>,
    /// What was asked for first that there is none of.
    missing: Cell<Option<Undefined>>,
}

impl Names {
    fn value(&self, value: Value) -> Value {
        // default: a missing name is the error of the copy.
        self.values[value].unwrap_or_else(|| {
            self.missing.set(self.missing.get().or(Some(Undefined::Value(value))));
            value
        })
    }

    fn block(&self, block: Block) -> Block {
        // default: as above.
        self.blocks[block].unwrap_or_else(|| {
            self.missing.set(self.missing.get().or(Some(Undefined::Block(block))));
            block
        })
    }
}

/// Copies blocks of a function into another one: all that are reached, in the order of the layout. `entry`, to which the entry's operations
/// are appended, stands for its entry, and `args` for its parameters; the other copies are new. Those of blocks that return do. Returns
/// them in the order of the blocks.
pub(crate) fn copy<R: Relocation>(
    into: &mut Function,
    from: &Function,
    blocks: &[Block],
    entry: Block,
    args: &[Value],
    relocation: &R,
) -> Result<Vec<Block>, R::Error> {
    let mut names = Names {
        values: Side::sized(from.value_count()),
        blocks: Side::sized(from.block_count()),
        missing: Cell::default(),
    };
    let mut copies = Vec::with_capacity(blocks.len());
    for &block in blocks {
        let is_entry = Some(block) == from.entry();
        let copy = if is_entry { entry } else { into.add_block() };
        names.blocks[block] = Some(copy);
        copies.push(copy);
        for (at, &param) in from.block(block).params.iter().enumerate() {
            let data = from.value(param);
            names.values[param] = match is_entry {
                true => args.get(at).copied(),
                false => Some(into.add_param(copy, data.ty, data.kind)),
            };
        }
    }
    // Instructions with operands that blocks further behind define.
    let mut early = Vec::new();
    for (&block, &copy) in blocks.iter().zip(&copies) {
        let insts = &from.block(block).insts;
        let mut made = std::mem::take(&mut into.block_mut(copy).insts);
        made.reserve_exact(insts.len());
        for &inst in insts {
            let (copy, is_early) = create(into, from, inst, relocation, &mut names)?;
            made.push(copy);
            if is_early {
                early.push((copy, inst));
            }
        }
        into.block_mut(copy).insts = made;
    }
    for (copy, inst) in early {
        let mut op = from.inst(inst).op;
        relocation.op(&mut op)?;
        op.change_operands(|value| names.value(value));
        into.set_op(copy, op);
    }
    for (&block, &copy) in blocks.iter().zip(&copies) {
        let data = from.block(block);
        let mut end = data.terminator.clone();
        end.map_values(|value| names.value(value));
        end.targets_mut().iter_mut().for_each(|target| target.block = names.block(target.block));
        into.terminate(copy, end, data.slot.map(|slot| relocation.slot(slot)));
    }
    match names.missing.get() {
        Some(what) => Err(relocation.undefined(what)),
        None => Ok(copies),
    }
}

/// An instruction of the copy; and whether an operand has no name yet.
fn create<R: Relocation>(
    into: &mut Function,
    from: &Function,
    inst: Inst,
    relocation: &R,
    names: &mut Names,
) -> Result<(Inst, bool), R::Error> {
    let InstData { mut op, result, slot } = *from.inst(inst);
    let is_call = matches!(op, Op::Call { .. });
    relocation.op(&mut op)?;
    let mut is_early = false;
    op.change_operands(|value| {
        is_early |= names.values[value].is_none();
        // default: a value without a name yet gets it later, or is the error of the copy.
        names.values[value].unwrap_or(value)
    });
    let copy = into.create(op, slot.map(|slot| relocation.slot(slot)));
    if let (Some(of), Some(result)) = (result, into.inst(copy).result) {
        into.set_kind(result, from.value(of).kind);
        names.values[of] = Some(result);
    }
    if is_call {
        let facts = relocation.facts(&from.calls[inst]);
        if facts != CallFacts::default() {
            into.calls[copy] = facts;
        }
    }
    Ok((copy, is_early))
}

/// Zeroes words of a function's stack, by their offsets, at the end of a block.
pub(crate) fn zero_words(function: &mut Function, block: Block, offsets: impl Iterator<Item = i32>) {
    for offset in offsets {
        let value = function.append_value(block, Op::constant(Type::I64, 0), None);
        let base = function.append_value(block, Op::StackAddress { offset }, None);
        function.set_kind(base, Kind::Stack);
        let access = Access { span: Some(Span { min: offset, max: offset }), ..Access::to(Region::Stack) };
        function.append(block, Op::Store { size: Size::Dw, access, base, offset: 0, value }, None);
    }
}
