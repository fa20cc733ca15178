//! Emission: instructions with their registers.

mod arithmetic;
mod atomic;
mod burst;
mod control;
mod memory;
mod prologue;
mod target;

use crate::codegen::lir::Reg;
use crate::codegen::machine::Ways;

use super::generator::Generator;
use super::op::{At, Op};
use super::regs;
use crate::native::x64::{Alu, Gpr, Mem, Width};

/// The registers of an instruction's operands.
#[derive(Clone, Copy)]
struct Assigned<'a>(&'a [Reg]);

impl Assigned<'_> {
    fn get(self, at: usize) -> Gpr {
        self.0.get(at).map_or(regs::SCRATCH, |reg| regs::gpr(*reg))
    }

    fn last(self) -> Gpr {
        self.0.last().map_or(regs::SCRATCH, |reg| regs::gpr(*reg))
    }
}

/// Number of operands of a place in memory.
const fn bases(at: At) -> usize {
    match at {
        At::Base(_) => 1,
        At::Indexed(..) => 2,
        At::Stack(_) => 0,
    }
}

impl Generator<'_> {
    pub(super) fn instruction(&mut self, op: Op, assigned: &[Reg], ways: Ways<'_>) {
        let regs = Assigned(assigned);
        match op {
            Op::Enter => {}
            Op::Number(number) => self.set(regs.get(0), number),
            Op::Function(function) => match self.entry(function) {
                Some(entry) => self.asm.lea(Width::Q64, regs.get(0), Mem::Label(entry)),
                None => self.internal("a function has no entry"),
            },
            Op::Stack(offset) => {
                let mem = self.stack(offset);
                self.asm.lea(Width::Q64, regs.get(0), mem);
            }
            Op::Add(..)
            | Op::AddImm(..)
            | Op::Sum(..)
            | Op::Alu(..)
            | Op::AluImm(..)
            | Op::Mul(..)
            | Op::MulImm(..)
            | Op::Neg(..)
            | Op::Shift(..)
            | Op::ShiftX(..)
            | Op::ShiftImm(..)
            | Op::MulHigh(..)
            | Op::Rotate(..)
            | Op::RotateImm(..)
            | Op::Divide { .. }
            | Op::DivideBy { .. }
            | Op::ZeroExtend(..)
            | Op::SignExtend(..)
            | Op::Swap(..)
            | Op::SwapHalf
            | Op::Set(..) => self.arithmetic(op, regs),
            Op::PrefetchFirst(_)
            | Op::Prefetch(_)
            | Op::EnterPacket(_)
            | Op::StoreVerdict { .. }
            | Op::Count(_)
            | Op::NextPacket => self.burst(op, regs, ways),
            Op::Load { .. }
            | Op::LoadAcquire(..)
            | Op::StoreRelease(..)
            | Op::Store(..)
            | Op::StoreImm(..)
            | Op::Update(..)
            | Op::UpdateImm(..)
            | Op::StoreBelow(..)
            | Op::PacketLen
            | Op::PacketLoad { .. }
            | Op::LookUp(..)
            | Op::TellReadable(..) => self.memory(op, regs),
            Op::Atomic(..)
            | Op::AtomicImm(..)
            | Op::Fetch(..)
            | Op::FetchLoop(..)
            | Op::CompareExchange(..) => self.atomic(op, regs),
            Op::Call(_)
            | Op::TailCall(_)
            | Op::RunProgram(_)
            | Op::Jump
            | Op::EnterLoop
            | Op::Branch(..)
            | Op::BranchMem(..)
            | Op::MayGoto
            | Op::Return => {
                self.control(op, regs, ways);
            }
        }
    }

    /// Sets a register to a number; clobbers the flags.
    fn set(&mut self, gpr: Gpr, number: u64) {
        if number == 0 {
            self.asm.alu_rr(Alu::Xor, Width::D32, gpr, gpr);
        } else {
            self.asm.mov_ri(gpr, number);
        }
    }

    fn mem(&self, at: At, regs: Assigned<'_>) -> Mem {
        match at {
            At::Base(offset) => Mem::at(regs.get(0), offset),
            At::Indexed(scale, offset) => Mem::indexed(regs.get(0), regs.get(1), scale, offset),
            At::Stack(offset) => self.stack(offset),
        }
    }
}
