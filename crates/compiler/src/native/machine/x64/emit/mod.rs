//! Emission: operations with their registers.

mod arithmetic;
mod atomic;
mod burst;
mod control;
mod memory;
mod prologue;

use crate::codegen::machine::Ways;

use crate::internal::Internal;
use crate::native::machine::emit::{OTHER_KIND, Operands};
use crate::native::machine::generator::Generator;
use crate::native::machine::op::{AluOp, At, Kind, Op, ShiftOp};
use crate::native::machine::operand::Width;
use crate::native::machine::x64::asm::{Alu, Assembler, Gpr, Mem, Shift};
use crate::native::machine::x64::entry;

/// The generator of code for x86-64.
pub(super) type X64<'a> = Generator<'a, Assembler>;
/// The registers of an operation's operands.
pub(super) type Regs<'a> = Operands<'a, Assembler>;

const fn alu(op: AluOp) -> Alu {
    match op {
        AluOp::Add => Alu::Add,
        AluOp::Sub => Alu::Sub,
        AluOp::Or => Alu::Or,
        AluOp::And => Alu::And,
        AluOp::Xor => Alu::Xor,
    }
}

const fn shift(op: ShiftOp) -> Shift {
    match op {
        ShiftOp::Shl => Shift::Shl,
        ShiftOp::Lshr => Shift::Shr,
        ShiftOp::Ashr => Shift::Sar,
        ShiftOp::Rotl => Shift::Rol,
    }
}

impl X64<'_> {
    pub(super) fn operation(&mut self, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        match op.kind() {
            Kind::Known => self.known(op, regs),
            Kind::Arithmetic => self.arithmetic(op, regs),
            Kind::Burst => self.burst(op, regs, ways),
            Kind::Memory => self.memory(op, regs),
            Kind::Atomic => self.atomic(op, regs),
            Kind::Control => self.control(op, regs, ways),
        }
    }

    fn known(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        match op {
            Op::Enter => {}
            Op::Number(number) => self.set(regs.get(0)?, number),
            Op::Function(function) => {
                let entry = self.entry(function)?;
                self.asm.lea(Width::Q64, regs.get(0)?, Mem::Label(entry));
            }
            Op::Stack(offset) => {
                let mem = self.stack(offset);
                self.asm.lea(Width::Q64, regs.get(0)?, mem);
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// Sets a register to a number; clobbers the flags.
    fn set(&mut self, gpr: Gpr, number: u64) {
        if number == 0 {
            self.asm.alu_rr(Alu::Xor, Width::D32, gpr, gpr);
        } else {
            self.asm.mov_ri(gpr, number);
        }
    }

    fn mem(&self, at: At, regs: Regs<'_>) -> Result<Mem, Internal> {
        Ok(match at {
            At::Base(offset) => Mem::at(regs.get(0)?, offset),
            At::Indexed(scale, offset) => Mem::indexed(regs.get(0)?, regs.get(1)?, scale, offset),
            At::Stack(offset) => self.stack(offset),
        })
    }

    /// A place in the function's stack, by its distance from the end.
    fn stack(&self, offset: i32) -> Mem {
        Mem::at(Gpr::Rsp, self.current.layout.end.wrapping_add(offset))
    }

    /// A slot of the frame.
    pub(super) fn slot(&self, slot: u32) -> Mem {
        Mem::at(Gpr::Rsp, self.current.layout.slots + 8 * slot.cast_signed())
    }

    /// Calls a function of the runtime. The caller-saved registers do not survive it.
    fn call_runtime(&mut self, address: u64) {
        entry::call_runtime(&mut self.asm, self.links, address);
    }
}
