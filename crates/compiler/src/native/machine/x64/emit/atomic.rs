//! Atomic operations.

use paceline_isa::AtomicOp;

use super::{Regs, X64, alu};
use crate::internal::Internal;
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::Op;
use crate::native::machine::operand::Width;
use crate::native::machine::x64::asm::{Cond, Gpr};
use crate::native::machine::x64::regs::SCRATCH;

impl X64<'_> {
    pub(super) fn atomic(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        match op {
            Op::Atomic(op, width, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.lock_alu_mr(alu(op), width, mem, regs.last()?);
            }
            Op::AtomicImm(op, width, at, imm) => {
                let mem = self.mem(at, regs)?;
                self.asm.lock_alu_mi(alu(op), width, mem, imm);
            }
            Op::Fetch(AtomicOp::Xchg, width, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.xchg_mr(width, mem, regs.last()?);
            }
            Op::Fetch(_, width, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.lock_xadd(width, mem, regs.last()?);
            }
            Op::FetchLoop(op, width, at) => {
                let (mem, operand, again) =
                    (self.mem(at, regs)?, regs.get(at.operands())?, self.asm.new_label());
                self.asm.load(width.into(), Gpr::Rax, mem);
                self.asm.bind(again);
                self.asm.mov_rr(width, SCRATCH, Gpr::Rax);
                self.asm.alu_rr(alu(op), width, SCRATCH, operand);
                self.asm.lock_cmpxchg(width, mem, SCRATCH);
                self.asm.jcc(Cond::Ne, again);
            }
            Op::CompareExchange(width, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.lock_cmpxchg(width, mem, regs.get(at.operands())?);
                if width == Width::D32 {
                    // On success `cmpxchg` does not write `eax`.
                    self.asm.mov_rr(width, Gpr::Rax, Gpr::Rax);
                }
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }
}
