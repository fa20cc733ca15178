//! Ordered and exclusive accesses. The base may be the stack pointer.

use super::assembler::Assembler;
use super::memory::Size;
use super::reg::Gpr;
use crate::native::machine::operand::Width;

impl Assembler {
    /// `ldarb`, `ldarh` or `ldar rt, [base]`: zero-extended; no later access overtakes it.
    pub fn load_acquire(&mut self, size: Size, rt: Gpr, base: Gpr) {
        self.ordered(0x08df_fc00, size, rt, base);
    }

    /// `stlrb`, `stlrh` or `stlr rt, [base]`: it overtakes no earlier access.
    pub fn store_release(&mut self, size: Size, rt: Gpr, base: Gpr) {
        self.ordered(0x089f_fc00, size, rt, base);
    }

    /// `ldaxr rt, [base]`: begins an exclusive access.
    pub fn load_exclusive(&mut self, width: Width, rt: Gpr, base: Gpr) {
        self.ordered(0x085f_fc00, size(width), rt, base);
    }

    /// `stlxr ws, rt, [base]`: ends an exclusive access; the status is 0 if it stored, and is in none of the other registers.
    pub fn store_exclusive(&mut self, width: Width, status: Gpr, rt: Gpr, base: Gpr) {
        if status == rt || status == base {
            return self.fail_operand();
        }
        let status = self.r(status);
        self.ordered(0x0800_fc00 | status << 16, size(width), rt, base);
    }

    /// `dmb ish`: no access overtakes another one across it.
    pub fn barrier(&mut self) {
        self.put(0xd503_3bbf);
    }

    fn ordered(&mut self, base_word: u32, size: Size, rt: Gpr, base: Gpr) {
        let (rt, base) = (self.r(rt), self.s(base));
        self.put(base_word | (size as u32) << 30 | base << 5 | rt);
    }
}

const fn size(width: Width) -> Size {
    match width {
        Width::D32 => Size::W,
        Width::Q64 => Size::X,
    }
}
