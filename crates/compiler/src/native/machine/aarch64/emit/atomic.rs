//! Atomic operations: loops of exclusive accesses, which every arm64 CPU has. Those that give the old value are full barriers, as in the
//! kernel.

use paceline_isa::AtomicOp;

use super::{Aarch64, INDEXED, Regs, size_of};
use crate::internal::Internal;
use crate::native::machine::aarch64::asm::{Arith, Cond, Gpr};
use crate::native::machine::aarch64::regs::{ADDRESS, SCRATCH, SECOND};
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::{AluOp, At, Op};
use crate::native::machine::operand::Width;

/// The operand of an atomic operation.
#[derive(Clone, Copy)]
enum Operand {
    Gpr(Gpr),
    Imm(i32),
}

impl Aarch64<'_> {
    pub(super) fn atomic(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        match op {
            Op::LoadAcquire(size, at) => {
                let address = self.address(at, regs)?;
                self.asm.load_acquire(size_of(size), regs.last()?, address);
            }
            Op::StoreRelease(size, at) => {
                let address = self.address(at, regs)?;
                self.asm.store_release(size_of(size), regs.last()?, address);
            }
            Op::Atomic(alu, width, at) => {
                let address = self.address(at, regs)?;
                self.change(alu, width, address, SCRATCH, Operand::Gpr(regs.last()?));
            }
            Op::AtomicImm(alu, width, at, imm) => {
                let address = self.address(at, regs)?;
                self.change(alu, width, address, SCRATCH, Operand::Imm(imm));
            }
            Op::Fetch(AtomicOp::Xchg, width, at) => {
                let (address, again, last) = (self.address(at, regs)?, self.asm.new_label(), regs.last()?);
                self.asm.bind(again);
                self.asm.load_exclusive(width, last, address);
                self.asm.store_exclusive(width, SECOND, regs.get(at.operands())?, address);
                self.asm.cbnz(Width::D32, SECOND, again);
                self.asm.barrier();
            }
            Op::Fetch(_, width, at) => self.fetch(AluOp::Add, width, at, regs)?,
            Op::FetchLoop(alu, width, at) => self.fetch(alu, width, at, regs)?,
            Op::CompareExchange(width, at) => {
                let (value, expected) = (regs.get(at.operands())?, regs.get(at.operands() + 1)?);
                let [again, done] = [(); 2].map(|()| self.asm.new_label());
                let (address, last) = (self.address(at, regs)?, regs.last()?);
                self.asm.bind(again);
                self.asm.load_exclusive(width, last, address);
                self.asm.arith(Arith::Subs, width, Gpr::Zr, last, expected, 0);
                self.asm.b_cond(Cond::Ne, done);
                self.asm.store_exclusive(width, SECOND, value, address);
                self.asm.cbnz(Width::D32, SECOND, again);
                self.asm.bind(done);
                self.asm.barrier();
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// The old value is in the last operand.
    fn fetch(&mut self, alu: AluOp, width: Width, at: At, regs: Regs<'_>) -> Result<(), Internal> {
        let address = self.address(at, regs)?;
        self.change(alu, width, address, regs.last()?, Operand::Gpr(regs.get(at.operands())?));
        self.asm.barrier();
        Ok(())
    }

    /// Changes memory by an operation, and leaves the old value in a register, or the new one if that is the scratch register.
    fn change(&mut self, alu: AluOp, width: Width, address: Gpr, old: Gpr, operand: Operand) {
        let again = self.asm.new_label();
        self.asm.bind(again);
        self.asm.load_exclusive(width, old, address);
        match operand {
            Operand::Gpr(operand) => self.alu(alu, width, SCRATCH, old, operand),
            Operand::Imm(imm) => self.alu_imm(alu, width, SCRATCH, old, imm),
        }
        self.asm.store_exclusive(width, SECOND, SCRATCH, address);
        self.asm.cbnz(Width::D32, SECOND, again);
    }

    /// The address of a place: of the base if that is all, or else in the address register.
    fn address(&mut self, at: At, regs: Regs<'_>) -> Result<Gpr, Internal> {
        let (base, offset) = match at {
            At::Base(0) => return regs.get(0),
            At::Base(offset) => (regs.get(0)?, offset),
            At::Stack(offset) => (Gpr::Sp, self.current.layout.end.wrapping_add(offset)),
            At::Indexed(..) => return Err(INDEXED),
        };
        self.add_imm(Width::Q64, ADDRESS, base, offset);
        Ok(ADDRESS)
    }
}
