//! Loads and stores.

use paceline_isa::{Operand, Reg, Size};

use super::emitter::{Emitter, SCRATCH, SCRATCH_2, gpr};
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Cond, Gpr, Mem, OpSize};

impl Emitter<'_> {
    /// A load. For a context field, the runtime returns the address of its own 64-bit copy of the value.
    pub(super) fn load(&mut self, slot: usize, size: Size, signed: bool, dst: Reg, base: Reg) {
        let dst = gpr(dst);
        self.check_access(slot, base);
        let (plain, done) = (self.asm.new_label(), self.asm.new_label());
        let value = self.field_value();
        self.asm.lea(Width::Q64, SCRATCH_2, value);
        self.asm.alu_rr(Alu::Cmp, Width::Q64, SCRATCH, SCRATCH_2);
        self.asm.jcc(Cond::Ne, plain);
        self.load_from(Size::Dw, false, dst);
        self.asm.jmp(done);
        self.asm.bind(plain);
        self.load_from(size, signed, dst);
        self.asm.bind(done);
    }

    fn load_from(&mut self, size: Size, signed: bool, dst: Gpr) {
        let mem = Mem::at(SCRATCH, 0);
        if signed {
            self.asm.load_sx(Width::Q64, OpSize::of(size), dst, mem);
        } else {
            self.asm.load(OpSize::of(size), dst, mem);
        }
    }

    /// A store, of whose value the runtime is told: it makes stores to the context itself.
    pub(super) fn store(&mut self, slot: usize, size: Size, base: Reg, src: Operand) {
        let value = self.field_value();
        match src {
            Operand::Imm(imm) => self.asm.store_imm(OpSize::Q64, value, imm),
            Operand::Reg(reg) => self.asm.store(OpSize::Q64, value, gpr(reg)),
        }
        self.check_access(slot, base);
        let mem = Mem::at(SCRATCH, 0);
        match src {
            Operand::Imm(imm) => self.asm.store_imm(OpSize::of(size), mem, imm),
            Operand::Reg(reg) => self.asm.store(OpSize::of(size), mem, gpr(reg)),
        }
    }
}
