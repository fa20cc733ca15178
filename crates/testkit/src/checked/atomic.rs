//! Atomic operations on memory at the first scratch register.

use paceline_isa::{AtomicOp, Reg};

use super::emitter::{Emitter, SCRATCH, SCRATCH_2, gpr};
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Cond, Gpr, Mem};

impl Emitter<'_> {
    pub(super) fn atomic(&mut self, width: Width, op: AtomicOp, src: Reg) {
        let (mem, src) = (Mem::at(SCRATCH, 0), gpr(src));
        match op {
            AtomicOp::Add { fetch: true } => self.asm.lock_xadd(width, mem, src),
            AtomicOp::Xchg => self.asm.xchg_mr(width, mem, src),
            AtomicOp::CmpXchg => {
                self.asm.lock_cmpxchg(width, mem, src);
                if width == Width::D32 {
                    // On success `cmpxchg` does not write `eax`, so the upper half must be zero-extended here.
                    self.asm.mov_rr(width, Gpr::Rax, Gpr::Rax);
                }
            }
            AtomicOp::Add { fetch: false } => self.asm.lock_alu_mr(Alu::Add, width, mem, src),
            AtomicOp::Or { fetch: false } => self.asm.lock_alu_mr(Alu::Or, width, mem, src),
            AtomicOp::And { fetch: false } => self.asm.lock_alu_mr(Alu::And, width, mem, src),
            AtomicOp::Xor { fetch: false } => self.asm.lock_alu_mr(Alu::Xor, width, mem, src),
            AtomicOp::Or { fetch: true } => self.atomic_loop(Alu::Or, width, src),
            AtomicOp::And { fetch: true } => self.atomic_loop(Alu::And, width, src),
            AtomicOp::Xor { fetch: true } => self.atomic_loop(Alu::Xor, width, src),
        }
    }

    /// Fetching `or`, `and` and `xor` have no instruction that returns the old value: a compare-and-exchange loop, which saves `rax` in
    /// the third scratch register.
    fn atomic_loop(&mut self, op: Alu, width: Width, receiver: Gpr) {
        let (mem, kept) = (Mem::at(SCRATCH, 0), Gpr::R9);
        self.asm.mov_rr(Width::Q64, kept, Gpr::Rax);
        let operand = if receiver == Gpr::Rax { kept } else { receiver };
        self.asm.load(width.into(), Gpr::Rax, mem);
        let again = self.asm.new_label();
        self.asm.bind(again);
        self.asm.mov_rr(width, SCRATCH_2, Gpr::Rax);
        self.asm.alu_rr(op, width, SCRATCH_2, operand);
        self.asm.lock_cmpxchg(width, mem, SCRATCH_2);
        self.asm.jcc(Cond::Ne, again);
        if receiver != Gpr::Rax {
            self.asm.mov_rr(width, receiver, Gpr::Rax);
            self.asm.mov_rr(Width::Q64, Gpr::Rax, kept);
        }
    }
}
