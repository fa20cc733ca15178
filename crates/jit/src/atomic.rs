//! Atomic operations.

use paceline_isa::{AtomicOp, Reg, Width};

use crate::emitter::Emitter;
use crate::plan::{SCRATCH, SCRATCH_2, native};
use crate::x64::{Alu, Cond, Gpr, Mem, Width as NativeWidth};

impl Emitter<'_> {
    pub(crate) fn atomic(&mut self, width: Width, op: AtomicOp, mem: Mem, src: Reg) {
        let width = native(width);
        match op {
            AtomicOp::Add { fetch: true } => {
                let src = self.gpr(src);
                self.asm.lock_xadd(width, mem, src);
            }
            AtomicOp::Xchg => {
                let src = self.gpr(src);
                self.asm.xchg_mr(width, mem, src);
            }
            AtomicOp::CmpXchg => {
                let src = self.value(src, SCRATCH_2);
                self.asm.lock_cmpxchg(width, mem, src);
                if width == NativeWidth::D32 {
                    // On success `cmpxchg` does not write `eax`, so the upper half must be zero-extended here.
                    self.asm.mov_rr(width, Gpr::Rax, Gpr::Rax);
                }
            }
            AtomicOp::Add { fetch: false } => self.atomic_plain(Alu::Add, width, mem, src),
            AtomicOp::Or { fetch: false } => self.atomic_plain(Alu::Or, width, mem, src),
            AtomicOp::And { fetch: false } => self.atomic_plain(Alu::And, width, mem, src),
            AtomicOp::Xor { fetch: false } => self.atomic_plain(Alu::Xor, width, mem, src),
            AtomicOp::Or { fetch: true } => self.atomic_loop(Alu::Or, width, mem, src),
            AtomicOp::And { fetch: true } => self.atomic_loop(Alu::And, width, mem, src),
            AtomicOp::Xor { fetch: true } => self.atomic_loop(Alu::Xor, width, mem, src),
        }
    }

    fn atomic_plain(&mut self, op: Alu, width: NativeWidth, mem: Mem, src: Reg) {
        let src = self.value(src, SCRATCH_2);
        self.asm.lock_alu_mr(op, width, mem, src);
    }

    /// Fetching `or`, `and` and `xor` have no instruction that returns the old value: a compare-and-exchange loop.
    fn atomic_loop(&mut self, op: Alu, width: NativeWidth, mem: Mem, src: Reg) {
        let receiver = self.gpr(src);
        // `rax` is saved in a scratch register meanwhile, whether it is the address, the operand or neither. In checked code, where
        // the first scratch register holds the address, `r9` (the host argument's register) is free.
        let (kept, mem) = match mem {
            Mem::Reg { base: Gpr::Rax, index, disp } => (SCRATCH, Mem::Reg { base: SCRATCH, index, disp }),
            Mem::Reg { base: SCRATCH, .. } => (Gpr::R9, mem),
            mem => (SCRATCH, mem),
        };
        self.asm.mov_rr(NativeWidth::Q64, kept, Gpr::Rax);
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
            self.asm.mov_rr(NativeWidth::Q64, Gpr::Rax, kept);
        }
    }
}
