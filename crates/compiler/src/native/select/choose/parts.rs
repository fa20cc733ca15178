//! Instructions that are parts of later ones of their blocks: the load and the operation of a store to the same place, a shift or a sum
//! with a number of a sum, and the sum that is the address of an access.

use crate::ir::uses::Uses;
use crate::ir::{BinaryOp, Block, Def, Inst, Op as Operation, Type, Value};
use crate::native::machine::op::AluOp;
use paceline_isa::Size;

use super::choice::Choice;
use crate::native::machine::operand::Scale;
use crate::native::machine::target::Target;

/// How far before an instruction its parts are looked for.
const REACH: usize = 16;

/// An operation on what is in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub(super) alu: AluOp,
    pub(super) ty: Type,
    /// The other operand.
    pub(super) by: Value,
}

/// A sum of a base, a multiple of an index, and a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) base: Value,
    pub(super) index: Value,
    pub(super) scale: Scale,
    pub(super) distance: i32,
}

impl<A: Target> Choice<'_, '_, A> {
    /// Finds the parts of a block's instructions.
    pub(super) fn find_parts(&mut self, uses: &Uses, block: Block) {
        let insts = &self.function.block(block).insts;
        for (at, &inst) in insts.iter().enumerate() {
            let before = &insts[at.saturating_sub(REACH)..at];
            let found = match self.function.inst(inst).op {
                Operation::Load { base, offset, .. } => {
                    [self.address(uses, (base, offset), 1, before), None, None]
                }
                Operation::Store { base, offset, .. } => {
                    let [load, operation] = self.updated(uses, &insts[at.saturating_sub(REACH)..=at]);
                    let accesses = if load.is_some() { 2 } else { 1 };
                    [load, operation, self.address(uses, (base, offset), accesses, before)]
                }
                Operation::Binary { op: BinaryOp::Add, ty: Type::I64, args: [a, b] } => {
                    // A sum with a number needs no second register.
                    let scaled = |(value, other)| {
                        self.immediate(Type::I64, other)
                            .is_none()
                            .then(|| self.term(value, other))
                            .flatten()?;
                        self.only_for(uses, value)
                    };
                    let found = [(b, a), (a, b)].into_iter().find_map(scaled);
                    [found.filter(|part| before.contains(part)), None, None]
                }
                _ => continue,
            };
            found.into_iter().flatten().for_each(|part| self.generator.current.parts[part] = true);
        }
    }

    /// The sum that is the address of an access, if `accesses` is the number of its uses: it can be part of them then.
    fn address(
        &self,
        uses: &Uses,
        (base, offset): (Value, i32),
        accesses: u32,
        before: &[Inst],
    ) -> Option<Inst> {
        let Def::Result(inst) = self.function.value(base).def else { return None };
        let Operation::Binary { op: BinaryOp::Add, ty: Type::I64, args } = self.function.inst(inst).op else {
            return None;
        };
        let is_sum = A::HAS_INDEX
            && args.iter().all(|arg| self.immediate(Type::I64, *arg).is_none())
            && self.sum_of(args).distance.checked_add(offset).is_some();
        (is_sum && uses.count(base) == accesses && before.contains(&inst)).then_some(inst)
    }

    /// The place of an access at a distance from a sum that is part of it.
    pub(super) fn indexed(&self, base: Value, offset: i32) -> Option<Sum> {
        let &Operation::Binary { op: BinaryOp::Add, args, .. } = self.part_of(base)? else { return None };
        let sum = self.sum_of(args);
        Some(Sum { distance: sum.distance.wrapping_add(offset), ..sum })
    }

    /// A sum, with a part or without.
    fn sum_of(&self, args: [Value; 2]) -> Sum {
        let [base, index] = args;
        // default: a sum without a part is that of both operands.
        self.sum(args).unwrap_or(Sum { base, index, scale: Scale::One, distance: 0 })
    }

    /// Whether an instruction is part of a later one.
    pub(super) fn is_part(&self, inst: Inst) -> bool {
        self.generator.current.parts[inst]
    }

    fn part_of(&self, value: Value) -> Option<&Operation> {
        match self.function.value(self.same(value)).def {
            Def::Result(inst) if self.is_part(inst) => Some(&self.function.inst(inst).op),
            _ => None,
        }
    }

    /// Load and operation of the store that some instructions of a block end with.
    fn updated(&self, uses: &Uses, insts: &[Inst]) -> [Option<Inst>; 2] {
        let found = || {
            let (store, before) = insts.split_last()?;
            let Operation::Store { size, base, offset, value, .. } = self.function.inst(*store).op else {
                return None;
            };
            let operation = self.only_for(uses, value)?;
            let Operation::Binary { op, ty, args: [a, b] } = self.function.inst(operation).op else {
                return None;
            };
            AluOp::of(op)?;
            let load = self.only_for(uses, a)?;
            let Operation::Load { size: of, signed: false, base: from, offset: at, .. } =
                self.function.inst(load).op
            else {
                return None;
            };
            // An immediate of 16 bits takes the decoder several cycles.
            let is_short = |imm: i32| size != Size::H || i8::try_from(imm).is_ok();
            let fits = self.part_of(b).is_none()
                && self.immediate(ty, b).is_none_or(is_short)
                && (size != Size::Dw || ty == Type::I64);
            let place = before.iter().position(|inst| *inst == load)?;
            let between = &before[place + 1..];
            let is_same = of == size && self.same(from) == self.same(base) && at == offset;
            let found = fits
                && is_same
                && between.contains(&operation)
                && between.iter().all(|later| self.can_pass(load, *later));
            found.then_some([Some(load), Some(operation)])
        };
        // default: a store that updates nothing has no parts.
        found().unwrap_or_default()
    }

    /// The operation on memory that a store of a value is.
    pub(super) fn update_of(&self, value: Value) -> Option<Update> {
        match *self.part_of(value)? {
            Operation::Binary { op, ty, args: [_, by] } => Some(Update { alu: AluOp::of(op)?, ty, by }),
            _ => None,
        }
    }

    /// A sum with a part, which is the second operand or the first one.
    pub(super) fn sum(&self, [a, b]: [Value; 2]) -> Option<Sum> {
        let of = |value: Value, other: Value| {
            self.part_of(value)?;
            self.term(value, other)
        };
        of(b, a).or_else(|| of(a, b))
    }

    /// The sum of a value that may be a part of it, and another one.
    fn term(&self, value: Value, other: Value) -> Option<Sum> {
        let Some(&Operation::Binary { op, ty: Type::I64, args: [inner, number] }) =
            self.function.op_of(value)
        else {
            return None;
        };
        let number = self.immediate(Type::I64, number)?;
        let scale = match (op, number) {
            (BinaryOp::Add, distance) => {
                return Some(Sum { base: inner, index: other, scale: Scale::One, distance });
            }
            (BinaryOp::Shl, 1) => Scale::Two,
            (BinaryOp::Shl, 2) => Scale::Four,
            (BinaryOp::Shl, 3) => Scale::Eight,
            _ => return None,
        };
        Some(Sum { base: other, index: inner, scale, distance: 0 })
    }
}
