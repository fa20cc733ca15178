//! Loads and stores.

use paceline_isa::{Insn, Operand, Reg, Size};

use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::materialized::alu::op_size;
use crate::plan::{SCRATCH_2, accesses_context};
use crate::x64::{Gpr, Mem, Width};

impl Emitter<'_> {
    /// The memory operand of an access, with a run-time check in checked code.
    pub(crate) fn address(&mut self, slot: usize, base: Reg, offset: i16) -> Mem {
        if self.settings.checked { self.checked_address(slot, base) } else { self.mem(base, offset) }
    }

    pub(crate) fn load(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let (size, signed, dst, base, offset) = match *insn {
            Insn::Load { size, signed, dst, base, offset } => (size, signed, dst, base, offset),
            Insn::LoadAcquire { size, dst, base, offset } => (size, false, dst, base, offset),
            _ => return Err(CompileError::Unsupported { slot, insn: *insn }),
        };
        let dst = self.gpr(dst);
        if self.settings.checked {
            self.checked_load(slot, size, signed, dst, base);
        } else if accesses_context(self.source, slot) {
            self.load_context(slot, insn, size, signed, dst)?;
        } else {
            let mem = self.mem(base, offset);
            self.load_from(size, signed, dst, mem);
        }
        Ok(())
    }

    pub(crate) fn load_from(&mut self, size: Size, signed: bool, dst: Gpr, mem: Mem) {
        if signed {
            self.asm.load_sx(Width::Q64, op_size(size), dst, mem);
        } else {
            self.asm.load(op_size(size), dst, mem);
        }
    }

    pub(crate) fn store(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let (size, base, offset, src) = match *insn {
            Insn::Store { size, base, offset, src } => (size, base, offset, src),
            Insn::StoreRelease { size, base, offset, src } => (size, base, offset, Operand::Reg(src)),
            _ => return Err(CompileError::Unsupported { slot, insn: *insn }),
        };
        if !self.settings.checked && accesses_context(self.source, slot) {
            return self.store_context(slot, insn, src);
        }
        self.tell_value(src);
        let mem = self.address(slot, base, offset);
        match src {
            Operand::Imm(imm) => self.asm.store_imm(op_size(size), mem, imm),
            Operand::Reg(reg) => {
                let src = self.value(reg, SCRATCH_2);
                self.asm.store(op_size(size), mem, src);
            }
        }
        Ok(())
    }
}
