//! Accesses to memory.

use crate::internal::Internal;
use std::array;
use std::iter::Flatten;

use crate::codegen::lir::{Operand, Place, Vreg};
use crate::ir::{Op as Operation, Type, Value};
use paceline_isa::{AtomicOp, Size, Width as BpfWidth};

use super::choice::{Choice, defined, defined_in, fixed, used};
use super::parts::{Sum, Update};
use crate::native::machine::op::{AluOp, At, Op};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;

/// The operands of a place in memory.
pub(super) type Bases = Flatten<array::IntoIter<Option<Operand>, 2>>;

impl<A: Target> Choice<'_, '_, A> {
    pub(super) fn memory(&mut self, op: &Operation, result: Result<Vreg, Internal>) -> Result<(), Internal> {
        match *op {
            Operation::Load { size, signed, base, offset, .. } => {
                self.load(size, signed, base, offset, result?)?;
            }
            Operation::Store { size, base, offset, value, .. } => self.store(size, base, offset, value)?,
            // Where loads and stores are not reordered among themselves, these are as others.
            Operation::LoadAcquire { size, base, offset, .. } if A::IS_ORDERED => {
                self.load(size, false, base, offset, result?)?;
            }
            Operation::StoreRelease { size, base, offset, value, .. } if A::IS_ORDERED => {
                self.store(size, base, offset, value)?;
            }
            Operation::LoadAcquire { size, base, offset, .. } => {
                let (at, base) = self.place(base, offset)?;
                self.push_each(Op::LoadAcquire(size, at), base.chain([defined(result?)]));
            }
            Operation::StoreRelease { size, base, offset, value, .. } => {
                let ((at, base), value) = (self.place(base, offset)?, self.value(value)?);
                self.push_each(Op::StoreRelease(size, at), base.chain([used(value)]));
            }
            Operation::Atomic { op, width, base, offset, value, expected, .. } => {
                self.atomic(op, width, (base, offset), value, expected, result)?;
            }
            Operation::PacketLoad { size, context, index, offset } => {
                self.load_packet(size, context, index, offset, result?)?;
            }
            _ => return Err(Internal("an operation is none on memory")),
        }
        Ok(())
    }

    /// A place in memory, and the operands for its base and index.
    pub(super) fn place(&mut self, base: Value, offset: i32) -> Result<(At, Bases), Internal> {
        let (at, bases) = match self.function.op_of(self.same(base)) {
            Some(Operation::StackAddress { offset: start }) => {
                (At::Stack(start.wrapping_add(offset)), [None; 2])
            }
            _ => match self.indexed(base, offset) {
                Some(Sum { base, index, scale, distance }) => {
                    let bases = [Some(used(self.value(base)?)), Some(used(self.value(index)?))];
                    (At::Indexed(scale, distance), bases)
                }
                None => (At::Base(offset), [Some(used(self.value(base)?)), None]),
            },
        };
        Ok((at, bases.into_iter().flatten()))
    }

    pub(super) fn load(
        &mut self,
        size: Size,
        signed: bool,
        base: Value,
        offset: i32,
        result: Vreg,
    ) -> Result<(), Internal> {
        let (at, base) = self.place(base, offset)?;
        self.push_each(Op::Load { size, signed, at }, base.chain([defined(result)]));
        Ok(())
    }

    fn store(&mut self, size: Size, base: Value, offset: i32, value: Value) -> Result<(), Internal> {
        let (at, base) = self.place(base, offset)?;
        if let Some(Update { alu, ty, by }) = self.update_of(value) {
            if let Some(imm) = self.immediate(ty, by) {
                self.push_each(Op::UpdateImm(alu, size, at, imm), base);
                return Ok(());
            }
            let by = used(self.value(by)?);
            self.push_each(Op::Update(alu, size, at), base.chain([by]));
            return Ok(());
        }
        self.store_at(size, at, base, value)
    }

    /// Stores the low bytes of a value.
    pub(super) fn store_at(
        &mut self,
        size: Size,
        at: At,
        base: impl IntoIterator<Item = Operand>,
        value: Value,
    ) -> Result<(), Internal> {
        let base = base.into_iter();
        // Of a short store the low bits of a number count.
        let ty = if size == Size::Dw { Type::I64 } else { Type::I32 };
        if let Some(imm) = self.immediate(ty, value) {
            self.push_each(Op::StoreImm(size, at, imm), base);
            return Ok(());
        }
        let value = self.value(value)?;
        self.push_each(Op::Store(size, at), base.chain([used(value)]));
        Ok(())
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        width: BpfWidth,
        (base, offset): (Value, i32),
        value: Value,
        expected: Option<Value>,
        result: Result<Vreg, Internal>,
    ) -> Result<(), Internal> {
        let (at, base) = self.place(base, offset)?;
        let (width, ty) = match width {
            BpfWidth::W32 => (Width::D32, Type::I32),
            BpfWidth::W64 => (Width::Q64, Type::I64),
        };
        let mut operands: Vec<Operand> = base.collect();
        let at_value = operands.len() as u8;
        let plain = match op {
            AtomicOp::Add { fetch: false } => Some(AluOp::Add),
            AtomicOp::Or { .. } => Some(AluOp::Or),
            AtomicOp::And { .. } => Some(AluOp::And),
            AtomicOp::Xor { .. } => Some(AluOp::Xor),
            AtomicOp::Add { fetch: true } | AtomicOp::Xchg | AtomicOp::CmpXchg => None,
        };
        if let (Some(alu), false, Some(imm)) = (plain, op.fetches(), self.immediate(ty, value)) {
            self.push(Op::AtomicImm(alu, width, at, imm), &operands);
            return Ok(());
        }
        let value = self.value(value)?;
        operands.push(used(value));
        // Without a register for it, the old value is in one of its own, which is written before the others are read for the last time.
        let old = A::OLD;
        let in_old = old.map_or(Place::Early, Place::Fixed);
        let op = match (plain, expected) {
            (Some(alu), _) if !op.fetches() => Op::Atomic(alu, width, at),
            (Some(alu), _) => {
                // What is in the register of the old value is overwritten before the others are read.
                operands.extend(old.map(|old| fixed(value, old)));
                operands.push(defined_in(result?, in_old));
                Op::FetchLoop(alu, width, at)
            }
            (None, Some(expected)) => {
                let expected = self.value(expected)?;
                operands.push(old.map_or(used(expected), |old| fixed(expected, old)));
                operands.push(defined_in(result?, in_old));
                Op::CompareExchange(width, at)
            }
            (None, None) => {
                operands.push(defined_in(result?, old.map_or(Place::Early, |_| Place::Reuse(at_value))));
                Op::Fetch(op, width, at)
            }
        };
        self.push(op, &operands);
        Ok(())
    }

    fn load_packet(
        &mut self,
        size: Size,
        context: Value,
        index: Option<Value>,
        offset: i32,
        result: Vreg,
    ) -> Result<(), Internal> {
        let context = self.value(context)?;
        let index = index.map(|index| self.value(index)).transpose()?.map(used);
        let indexed = index.is_some();
        let length = self.fresh();
        let operands: Vec<Operand> = [used(context)]
            .into_iter()
            .chain(index)
            .chain([defined_in(result, Place::Early), defined_in(length, Place::Early)])
            .collect();
        self.push(Op::PacketLoad { size, indexed, offset }, &operands);
        Ok(())
    }
}
