//! Emission: operations with their registers.
//!
//! Operations on memory are loads and stores with the operation in between, numbers that do not fit into an instruction come from a
//! scratch register. Functions of the runtime are called by their addresses, so that the code has no relocations.

mod arithmetic;
mod atomic;
mod burst;
mod control;
mod memory;
mod prologue;

use crate::codegen::machine::Ways;
use paceline_isa as isa;

use crate::internal::Internal;
use crate::native::machine::aarch64::asm::{Arith, Assembler, Gpr, Logic, Size, arith_imm, logic_imm};
use crate::native::machine::aarch64::regs::{ADDRESS, SECOND};
use crate::native::machine::emit::{OTHER_KIND, Operands};
use crate::native::machine::generator::Generator;
use crate::native::machine::op::{AluOp, Kind, Op};
use crate::native::machine::operand::Width;

/// The generator of code for arm64.
pub(super) type Aarch64<'a> = Generator<'a, Assembler>;
/// The registers of an operation's operands.
pub(super) type Regs<'a> = Operands<'a, Assembler>;

/// Text of the error for an indexed place, which [`HAS_INDEX`](crate::native::machine::target::Target::HAS_INDEX) rules out.
const INDEXED: Internal = Internal("an access has an index");

const fn size_of(size: isa::Size) -> Size {
    match size {
        isa::Size::B => Size::B,
        isa::Size::H => Size::H,
        isa::Size::W => Size::W,
        isa::Size::Dw => Size::X,
    }
}

/// The width in which numbers of a size are compared and computed.
const fn width_of(size: Size) -> Width {
    match size {
        Size::X => Width::Q64,
        Size::B | Size::H | Size::W => Width::D32,
    }
}

/// A number as the immediate of a width: sign-extended for 64 bits.
const fn immediate(width: Width, imm: i32) -> u64 {
    match width {
        Width::D32 => imm.cast_unsigned() as u64,
        Width::Q64 => (imm as i64).cast_unsigned(),
    }
}

impl Aarch64<'_> {
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
            Op::Number(number) => self.asm.mov_imm(regs.get(0)?, number),
            Op::Function(function) => {
                let entry = self.entry(function)?;
                self.asm.adr(regs.get(0)?, entry);
            }
            Op::Stack(offset) => {
                let offset = self.current.layout.end.wrapping_add(offset);
                self.add_imm(Width::Q64, regs.get(0)?, Gpr::Sp, offset);
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// A sum with a number; both registers may be the stack pointer. Overwrites the address register if the number is in no
    /// instruction.
    fn add_imm(&mut self, width: Width, to: Gpr, from: Gpr, number: i32) {
        let (op, distance) = if number < 0 {
            (Arith::Sub, number.unsigned_abs())
        } else {
            (Arith::Add, number.unsigned_abs())
        };
        let (low, high) = (u64::from(distance & 0xfff), u64::from(distance & !0xfff));
        if arith_imm(distance.into()).is_some() {
            self.asm.arith_imm(op, width, to, from, distance.into());
        } else if arith_imm(high).is_some() {
            self.asm.arith_imm(op, width, to, from, high);
            self.asm.arith_imm(op, width, to, to, low);
        } else if width == Width::Q64 {
            self.asm.mov_imm(ADDRESS, immediate(width, number));
            self.asm.arith_extended(Arith::Add, to, from, ADDRESS, false);
        } else {
            self.asm.mov_imm(ADDRESS, immediate(width, number));
            self.asm.arith(Arith::Add, width, to, from, ADDRESS, 0);
        }
    }

    /// Sets the flags by a comparison with a number. Overwrites the second operand's register if the number is in no instruction.
    fn compare_imm(&mut self, width: Width, first: Gpr, imm: i32) {
        let (op, distance) =
            if imm < 0 { (Arith::Adds, imm.unsigned_abs()) } else { (Arith::Subs, imm.unsigned_abs()) };
        if arith_imm(distance.into()).is_some() {
            return self.asm.arith_imm(op, width, Gpr::Zr, first, distance.into());
        }
        self.asm.mov_imm(SECOND, immediate(width, imm));
        self.asm.arith(Arith::Subs, width, Gpr::Zr, first, SECOND, 0);
    }

    /// Sets the flags by the bits that a register and a number have in common. Overwrites as [`compare_imm`](Self::compare_imm).
    fn test_imm(&mut self, width: Width, first: Gpr, imm: i32) {
        self.logic_imm(Logic::Ands, width, Gpr::Zr, first, imm);
    }

    /// An operation on bits with a number. Overwrites as [`compare_imm`](Self::compare_imm).
    fn logic_imm(&mut self, op: Logic, width: Width, to: Gpr, from: Gpr, imm: i32) {
        let number = immediate(width, imm);
        if logic_imm(width, number).is_some() {
            return self.asm.logic_imm(op, width, to, from, number);
        }
        self.asm.mov_imm(SECOND, number);
        self.asm.logic(op, width, to, from, SECOND);
    }

    /// An operation on two registers.
    fn alu(&mut self, alu: AluOp, width: Width, to: Gpr, first: Gpr, second: Gpr) {
        match alu {
            AluOp::Add => self.asm.arith(Arith::Add, width, to, first, second, 0),
            AluOp::Sub => self.asm.arith(Arith::Sub, width, to, first, second, 0),
            AluOp::And => self.asm.logic(Logic::And, width, to, first, second),
            AluOp::Or => self.asm.logic(Logic::Orr, width, to, first, second),
            AluOp::Xor => self.asm.logic(Logic::Eor, width, to, first, second),
        }
    }

    /// An operation on a register and a number. Overwrites as [`compare_imm`](Self::compare_imm), and never the address register.
    fn alu_imm(&mut self, alu: AluOp, width: Width, to: Gpr, first: Gpr, imm: i32) {
        match alu {
            AluOp::Add | AluOp::Sub => {
                let (op, other) = match alu {
                    AluOp::Add => (Arith::Add, Arith::Sub),
                    _ => (Arith::Sub, Arith::Add),
                };
                let distance = u64::from(imm.unsigned_abs());
                if arith_imm(distance).is_some() {
                    let op = if imm < 0 { other } else { op };
                    return self.asm.arith_imm(op, width, to, first, distance);
                }
                self.asm.mov_imm(SECOND, immediate(width, imm));
                self.asm.arith(op, width, to, first, SECOND, 0);
            }
            AluOp::And => self.logic_imm(Logic::And, width, to, first, imm),
            AluOp::Or => self.logic_imm(Logic::Orr, width, to, first, imm),
            AluOp::Xor => self.logic_imm(Logic::Eor, width, to, first, imm),
        }
    }
}
