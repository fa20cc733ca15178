//! Atomic operations.

use paceline_isa::AtomicOp;

use super::{Assigned, bases};
use crate::native::select::generator::Generator;
use crate::native::select::op::Op;
use crate::native::select::regs::SCRATCH;
use crate::native::x64::{Cond, Gpr, Width};

impl Generator<'_> {
    pub(super) fn atomic(&mut self, op: Op, regs: Assigned<'_>) {
        match op {
            Op::Atomic(alu, width, at) => {
                let mem = self.mem(at, regs);
                self.asm.lock_alu_mr(alu, width, mem, regs.last());
            }
            Op::AtomicImm(alu, width, at, imm) => {
                let mem = self.mem(at, regs);
                self.asm.lock_alu_mi(alu, width, mem, imm);
            }
            Op::Fetch(AtomicOp::Xchg, width, at) => {
                let mem = self.mem(at, regs);
                self.asm.xchg_mr(width, mem, regs.last());
            }
            Op::Fetch(_, width, at) => {
                let mem = self.mem(at, regs);
                self.asm.lock_xadd(width, mem, regs.last());
            }
            Op::FetchLoop(alu, width, at) => {
                let (mem, operand, again) = (self.mem(at, regs), regs.get(bases(at)), self.asm.new_label());
                self.asm.load(width.into(), Gpr::Rax, mem);
                self.asm.bind(again);
                self.asm.mov_rr(width, SCRATCH, Gpr::Rax);
                self.asm.alu_rr(alu, width, SCRATCH, operand);
                self.asm.lock_cmpxchg(width, mem, SCRATCH);
                self.asm.jcc(Cond::Ne, again);
            }
            Op::CompareExchange(width, at) => {
                let mem = self.mem(at, regs);
                self.asm.lock_cmpxchg(width, mem, regs.get(bases(at)));
                if width == Width::D32 {
                    // On success `cmpxchg` does not write `eax`.
                    self.asm.mov_rr(width, Gpr::Rax, Gpr::Rax);
                }
            }
            _ => self.internal("an instruction is emitted as one of another kind"),
        }
    }
}
