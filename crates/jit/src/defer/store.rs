//! Stores. A store to the stack is deferred while the stored register keeps its contents: one that only provides the key of a
//! look-up is eliminated if the look-up takes the key from the register.

use paceline_isa::{Insn, Operand, Reg, RegSet, Size, eval};
use paceline_verifier::Base as Memory;

use super::{Base, StackStore, StackStores, Value};
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::materialized::alu::op_size;
use crate::plan::{SCRATCH_2, accesses_context};
use crate::stack::{Cells, stored};
use crate::x64::{Alu, Held, OpSize};

/// A 32-bit store to the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// Offset from the frame pointer in bytes.
    pub(crate) disp: i32,
    pub(crate) what: Kept,
    /// Whether the store is still deferred.
    waits: bool,
}

/// The stored value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    /// A register, its contents, and an upper bound for the number of significant bits.
    Reg(Reg, Held, u8),
    Number(i32),
}

impl Stored {
    pub(crate) fn is_of(&self, reg: Reg) -> bool {
        matches!(self.what, Kept::Reg(kept, ..) if kept == reg)
    }

    fn cells(&self) -> Cells {
        Cells::touched(self.disp, self.disp + 4)
    }
}

impl Emitter<'_> {
    /// Emits the deferred store, unless its cells are dead from the current instruction on.
    pub(crate) fn make_store(&mut self) {
        let Some(stored) = self.deferred.stored.take() else { return };
        if stored.waits && self.deferred.stack.is_some_and(|live| !live.intersects(stored.cells())) {
            return;
        }
        self.deferred.stored = Some(Stored { waits: false, ..stored });
        if !stored.waits {
            return;
        }
        let mem = self.plan.stack(stored.disp);
        match stored.what {
            Kept::Number(number) => self.asm.store_imm(OpSize::D32, mem, number),
            Kept::Reg(_, held, _) => {
                let src = self.asm.held(held);
                self.asm.store(OpSize::D32, mem, src);
            }
        }
    }

    /// The same before the stack or the register changes; the store is forgotten.
    pub(crate) fn end_store(&mut self) {
        self.make_store();
        self.deferred.stored = None;
    }

    /// Emits the deferred store before a look-up branches, unless its cells are dead afterwards.
    pub(crate) fn make_store_after(&mut self, slot: usize, insn: &Insn) {
        self.deferred.stack = self.liveness.stack_after(self.source, slot, insn);
        self.make_store();
    }

    /// Emits the deferred store before an instruction that may read it.
    pub(crate) fn make_store_for(&mut self, slot: usize) {
        let Some(read) = self.source.fact(slot).stack_read else { return };
        let read = Cells::touched(read.start.into(), read.end.into());
        if self.deferred.stored.is_some_and(|stored| stored.cells().intersects(read)) {
            self.make_store();
        }
    }

    pub(crate) fn deferred_store(
        &mut self,
        slot: usize,
        insn: &Insn,
        after: RegSet,
    ) -> Result<(), CompileError> {
        let (size, base, offset, src) = match *insn {
            Insn::Store { size, base, offset, src } => (size, base, offset, src),
            Insn::StoreRelease { size, base, offset, src } => (size, base, offset, Operand::Reg(src)),
            _ => return self.emit_materialized(slot, insn),
        };
        if accesses_context(self.source, slot) {
            return self.emit_materialized(slot, insn);
        }
        let after_it = self.liveness.stack_after(self.source, slot, insn);
        if let (Some(live), Some((start, end))) = (after_it, stored(self.source, slot, insn))
            && !live.intersects(Cells::touched(start, end))
        {
            return Ok(());
        }
        self.end_store();
        self.note_store(slot, insn, src);
        for reg in after.iter() {
            if matches!(self.deferred.get(reg), Value::Bytes(_)) {
                self.materialize(reg);
            }
        }
        if let Operand::Reg(reg) = src
            && self.add_in_memory(size, base, offset, reg, after)
        {
            return Ok(());
        }
        let constant = match src {
            Operand::Imm(imm) => Some(imm),
            Operand::Reg(reg) => match self.deferred.get(reg) {
                Value::Const(value) => immediate(size, value),
                _ => None,
            },
        };
        // If the readers of the cell are known, no other pointer aliases it.
        let waits = after_it.is_some();
        let kept = |disp, what| Some(Stored { disp, what, waits });
        let on_stack = self.stack_offset(base, offset).filter(|_| size == Size::W);
        match (src, constant) {
            (_, Some(imm)) if waits && on_stack.is_some() => {
                self.deferred.stored = on_stack.and_then(|disp| kept(disp, Kept::Number(imm)));
            }
            (_, Some(imm)) => {
                let mem = self.deferred_address(base, offset);
                self.asm.store_imm(op_size(size), mem, imm);
            }
            (Operand::Reg(reg), None) => {
                self.materialize(reg);
                let mem = self.deferred_address(base, offset);
                let src = if reg == Reg::R10 { self.value(reg, SCRATCH_2) } else { self.home(reg) };
                let what = Kept::Reg(reg, self.asm.hold(src), self.deferred.bits(reg));
                self.deferred.stored = on_stack.filter(|_| reg != Reg::R10).and_then(|disp| kept(disp, what));
                if self.deferred.stored.is_none_or(|stored| !stored.waits) {
                    self.asm.store(op_size(size), mem, src);
                }
            }
            (Operand::Imm(_), None) => {}
        }
        Ok(())
    }

    /// Records a store to the stack, or drops recorded stores that it may overwrite.
    fn note_store(&mut self, slot: usize, insn: &Insn, src: Operand) {
        let Insn::Store { size, .. } = *insn else {
            self.deferred.stores = StackStores::default();
            return;
        };
        match (stored(self.source, slot, insn), self.source.fact(slot).memory) {
            (Some((at, _)), _) => {
                let number = match src {
                    Operand::Imm(imm) => Some(imm as u64),
                    Operand::Reg(reg) => match self.deferred.get(reg) {
                        Value::Const(value) => Some(value),
                        _ => None,
                    },
                };
                let number = number.map(|number| eval::zero_extend(size, number));
                self.deferred.stores.store(StackStore { at, bytes: size.bytes() as u8, number });
            }
            (None, Some(memory)) if !matches!(memory.base, Memory::OwnStack | Memory::Mixed) => {}
            _ => self.deferred.stores = StackStores::default(),
        }
    }

    /// Offset of a stack address from the frame pointer.
    pub(crate) fn stack_offset(&self, base: Reg, offset: i16) -> Option<i32> {
        match self.deferred.get(base) {
            Value::Sum(Base::Frame, disp) => disp.checked_add(i32::from(offset)),
            _ => None,
        }
    }

    /// A store of a value that was loaded from the same address and incremented (read-modify-write).
    fn add_in_memory(&mut self, size: Size, base: Reg, offset: i16, src: Reg, after: RegSet) -> bool {
        let Value::Bytes(bytes) = self.deferred.get(src) else { return false };
        let (Some((_, plus)), Some(shape)) = (bytes.plus, bytes.shape()) else { return false };
        if after.contains(src) || shape.size != size {
            return false;
        }
        let mem = self.deferred_address(base, offset);
        let same = self.deferred.get(src) == Value::Bytes(bytes) && mem == self.place(bytes.base, shape.disp);
        if same {
            self.asm.alu_mi(Alu::Add, op_size(size), mem, plus);
        }
        same
    }
}

/// The sign-extended immediate that stores the low bytes of a constant.
fn immediate(size: Size, value: u64) -> Option<i32> {
    match size {
        Size::Dw => i32::try_from(value as i64).ok(),
        _ => Some(eval::sign_extend(size, value) as i32),
    }
}
