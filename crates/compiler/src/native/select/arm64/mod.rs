//! Emission for arm64: instructions with their registers.
//!
//! Operations on memory are loads and stores with the operation in between, numbers that do not fit into an instruction come from a
//! scratch register. Functions of the runtime are called by their addresses, so that the code has no relocations.
//!
//! Values are in `x0` to `x14` and `x19` to `x28`, the host in `x5`. `x16`, `x17` and `x15` are scratch: of moves and operands; of
//! addresses and offsets that no instruction has; of a second operand and the status of an exclusive store. `x18` is the
//! platform's. A function that makes calls has a frame record first; there is no red zone. Atomic operations are loops of `ldaxr`
//! and `stlxr`, and end with `dmb ish` if they give the old value, as the kernel's are full barriers. Acquire and release are
//! instructions of their own, since loads and stores are reordered. A conditional branch that does not reach its label (1 MiB)
//! becomes the inverse one around a branch.

mod arithmetic;
mod atomic;
mod burst;
mod control;
mod entry;
mod memory;
mod prologue;
mod regs;
mod target;

use crate::codegen::lir::Reg;
use crate::codegen::machine::Ways;
use paceline_isa as isa;

use super::generator::Generator;
use super::op::{At, Op};
use crate::native::arm64::{Arith, Assembler, Cond, Gpr, Logic, Size, arith_imm, logic_imm};
use crate::native::x64::Width;
use crate::native::x64::{self, Alu, OpSize};
use regs::{ADDRESS, SECOND};

/// The generator of code for arm64.
type Arm64<'a> = Generator<'a, Assembler>;

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
        At::Stack(_) => 0,
        At::Indexed(..) => 2,
    }
}

/// What is wrong with a place that [`HAS_INDEX`](super::target::Target::HAS_INDEX) rules out.
const INDEXED: &str = "an access has an index";

const fn size_of(size: isa::Size) -> Size {
    match size {
        isa::Size::B => Size::B,
        isa::Size::H => Size::H,
        isa::Size::W => Size::W,
        isa::Size::Dw => Size::X,
    }
}

const fn operand_size(size: OpSize) -> Size {
    match size {
        OpSize::B8 => Size::B,
        OpSize::W16 => Size::H,
        OpSize::D32 => Size::W,
        OpSize::Q64 => Size::X,
    }
}

/// The width in which numbers of a size are compared and computed.
const fn width_of(size: Size) -> Width {
    match size {
        Size::X => Width::Q64,
        Size::B | Size::H | Size::W => Width::D32,
    }
}

/// The condition after a comparison; `None` for those on parity, which arm64 does not have.
const fn condition(cond: x64::Cond) -> Option<Cond> {
    Some(match cond {
        x64::Cond::E => Cond::Eq,
        x64::Cond::Ne => Cond::Ne,
        x64::Cond::B => Cond::Lo,
        x64::Cond::Ae => Cond::Hs,
        x64::Cond::Be => Cond::Ls,
        x64::Cond::A => Cond::Hi,
        x64::Cond::L => Cond::Lt,
        x64::Cond::Ge => Cond::Ge,
        x64::Cond::Le => Cond::Le,
        x64::Cond::G => Cond::Gt,
        x64::Cond::S => Cond::Mi,
        x64::Cond::Ns => Cond::Pl,
        x64::Cond::O => Cond::Vs,
        x64::Cond::No => Cond::Vc,
        x64::Cond::P | x64::Cond::Np => return None,
    })
}

/// A number as the immediate of a width: sign-extended for 64 bits.
const fn immediate(width: Width, imm: i32) -> u64 {
    match width {
        Width::D32 => imm.cast_unsigned() as u64,
        Width::Q64 => (imm as i64).cast_unsigned(),
    }
}

impl Arm64<'_> {
    fn condition(&mut self, cond: x64::Cond) -> Cond {
        condition(cond).unwrap_or_else(|| {
            self.internal("a condition on parity is selected for arm64");
            Cond::Eq
        })
    }

    fn one(&mut self, op: Op, assigned: &[Reg], ways: Ways<'_>) {
        let regs = Assigned(assigned);
        match op {
            Op::Enter => {}
            Op::Number(number) => self.asm.mov_imm(regs.get(0), number),
            Op::Function(function) => match self.entry(function) {
                Some(entry) => self.asm.adr(regs.get(0), entry),
                None => self.internal("a function has no entry"),
            },
            Op::Stack(offset) => {
                let offset = self.current.layout.end.wrapping_add(offset);
                self.add_imm(Width::Q64, regs.get(0), Gpr::Sp, offset);
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
            | Op::Store(..)
            | Op::StoreImm(..)
            | Op::Update(..)
            | Op::UpdateImm(..)
            | Op::StoreBelow(..)
            | Op::PacketLen
            | Op::PacketLoad { .. }
            | Op::LookUp(..)
            | Op::TellReadable(..) => self.memory(op, regs),
            Op::LoadAcquire(..)
            | Op::StoreRelease(..)
            | Op::Atomic(..)
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
            | Op::Return => self.control(op, regs, ways),
        }
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

    /// An operation on two registers. `None` for a comparison, which sets flags only.
    fn alu(&mut self, alu: Alu, width: Width, to: Gpr, first: Gpr, second: Gpr) {
        match alu {
            Alu::Add => self.asm.arith(Arith::Add, width, to, first, second, 0),
            Alu::Sub => self.asm.arith(Arith::Sub, width, to, first, second, 0),
            Alu::And => self.asm.logic(Logic::And, width, to, first, second),
            Alu::Or => self.asm.logic(Logic::Orr, width, to, first, second),
            Alu::Xor => self.asm.logic(Logic::Eor, width, to, first, second),
            Alu::Cmp => self.asm.arith(Arith::Subs, width, Gpr::Zr, first, second, 0),
        }
    }

    /// An operation on a register and a number. Overwrites as [`compare_imm`](Self::compare_imm), and never the address register.
    fn alu_imm(&mut self, alu: Alu, width: Width, to: Gpr, first: Gpr, imm: i32) {
        match alu {
            Alu::Add | Alu::Sub => {
                let (op, other) = match alu {
                    Alu::Add => (Arith::Add, Arith::Sub),
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
            Alu::And => self.logic_imm(Logic::And, width, to, first, imm),
            Alu::Or => self.logic_imm(Logic::Orr, width, to, first, imm),
            Alu::Xor => self.logic_imm(Logic::Eor, width, to, first, imm),
            Alu::Cmp => self.compare_imm(width, first, imm),
        }
    }
}
