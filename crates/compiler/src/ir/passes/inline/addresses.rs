//! Addresses that a function was given, which are constant ones in the stack of the function that it is a part of.

use crate::ir::cfg::Cfg;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::{Access, Region, Span, Type};

/// Makes sums that are constant addresses in the stack such addresses, and notes of accesses at them where they go: promotion looks for
/// both.
pub(super) fn settle(function: &mut Function, cfg: &Cfg) {
    // Definitions come before uses.
    for &block in cfg.order() {
        for at in 0..function.block(block).insts.len() {
            let inst = function.block(block).insts[at];
            if let Some(op) = settled(function, inst) {
                function.set_op(inst, op);
            }
        }
    }
}

/// What an operation becomes, if it becomes another one.
fn settled(function: &Function, inst: Inst) -> Option<Op> {
    match &function.inst(inst).op {
        Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [a, b] } => {
            sum(function, *a, *b, i64::checked_add).or_else(|| sum(function, *b, *a, i64::checked_add))
        }
        Op::Binary { op: BinaryOp::Sub, ty: Type::I64, args: [a, b] } => {
            sum(function, *a, *b, i64::checked_sub)
        }
        op => {
            let (base, offset, size, _) = op.access()?;
            let at = offset_of(function, base)?.checked_add(offset)?;
            let inside = at >= -function.stack.cast_signed() && at.checked_add(size.bytes() as i32)? <= 0;
            let exact = Access { span: Some(Span { min: at, max: at }), ..Access::to(Region::Stack) };
            let mut op = *op;
            *op.access_mut().filter(|access| inside && **access != exact)? = exact;
            Some(op)
        }
    }
}

/// The address that an address and a number make.
fn sum(function: &Function, base: Value, by: Value, add: fn(i64, i64) -> Option<i64>) -> Option<Op> {
    let base = offset_of(function, base)?;
    let offset = add(base.into(), function.as_const(by)?.cast_signed())?;
    Some(Op::StackAddress { offset: offset.try_into().ok()? })
}

/// The offset of a constant address in the stack.
fn offset_of(function: &Function, value: Value) -> Option<i32> {
    match function.op_of(value) {
        Some(Op::StackAddress { offset }) => Some(*offset),
        _ => None,
    }
}
