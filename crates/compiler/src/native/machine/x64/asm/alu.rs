use super::assembler::Assembler;
use super::bytes::Bytes;
use super::encode::{Field, Op, Vex};
use super::mem::Mem;
use super::reg::{Cond, Gpr, OpSize};
use crate::native::machine::operand::Width;

/// Operations that share one opcode pattern, with their numbers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Alu {
    Add = 0,
    Or = 1,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

impl Alu {
    /// All operations.
    pub const ALL: [Alu; 6] = [Alu::Add, Alu::Or, Alu::And, Alu::Sub, Alu::Xor, Alu::Cmp];

    /// The opcode of `op r/m8, r8`; the other forms are at fixed distances from it.
    #[inline]
    pub(super) const fn opcode(self) -> u8 {
        (self as u8) << 3
    }
}

/// Opcode and immediate of the immediate form, with a sign-extended byte if that suffices.
#[inline]
pub(super) fn alu_immediate(size: OpSize, imm: i32) -> (Op, Bytes) {
    let value = if size == OpSize::W16 { i32::from(imm as i16) } else { imm };
    match i8::try_from(value) {
        Ok(short) if size != OpSize::B8 => (Op::one(0x83), Bytes::byte(short as u8)),
        _ => (Op::one(0x80).sized(size), Bytes::immediate(size, imm)),
    }
}

impl Assembler {
    /// `op dst, src`
    #[inline]
    pub fn alu_rr(&mut self, op: Alu, size: impl Into<OpSize>, dst: Gpr, src: Gpr) {
        let size = size.into();
        self.encode_r(Op::one(op.opcode()).sized(size), size, Field::Reg(src), dst, Bytes::NONE);
    }

    /// `op dst, imm`; the immediate is truncated to `size`, or sign-extended to 64 bits.
    pub fn alu_ri(&mut self, op: Alu, size: impl Into<OpSize>, dst: Gpr, imm: i32) {
        let size = size.into();
        let (opcode, bytes) = alu_immediate(size, imm);
        // al, ax, eax and rax have a form without ModRM, which has no short immediate.
        if dst == Gpr::Rax && (bytes.len > 1 || size == OpSize::B8) {
            return self.encode_o(Op::one(op.opcode() + 4).sized(size), size, dst, bytes);
        }
        self.encode_r(opcode, size, Field::Digit(op as u8), dst, bytes);
    }

    /// `op dst, [mem]`
    #[inline]
    pub fn alu_rm(&mut self, op: Alu, size: impl Into<OpSize>, dst: Gpr, mem: Mem) {
        let size = size.into();
        self.encode_m(Op::one(op.opcode() + 2).sized(size), size, Field::Reg(dst), mem, Bytes::NONE);
    }

    /// `op [mem], src`
    #[inline]
    pub fn alu_mr(&mut self, op: Alu, size: impl Into<OpSize>, mem: Mem, src: Gpr) {
        let size = size.into();
        self.encode_m(Op::one(op.opcode()).sized(size), size, Field::Reg(src), mem, Bytes::NONE);
    }

    /// `op [mem], imm`; the immediate is truncated to `size`, or sign-extended to 64 bits.
    pub fn alu_mi(&mut self, op: Alu, size: impl Into<OpSize>, mem: Mem, imm: i32) {
        let size = size.into();
        let (opcode, bytes) = alu_immediate(size, imm);
        self.encode_m(opcode, size, Field::Digit(op as u8), mem, bytes);
    }

    /// `test left, right`
    #[inline]
    pub fn test_rr(&mut self, size: impl Into<OpSize>, left: Gpr, right: Gpr) {
        let size = size.into();
        self.encode_r(Op::one(0x84).sized(size), size, Field::Reg(right), left, Bytes::NONE);
    }

    /// `test reg, imm`; the immediate is truncated to `size`, or sign-extended to 64 bits.
    pub fn test_ri(&mut self, size: impl Into<OpSize>, reg: Gpr, imm: i32) {
        let size = size.into();
        let bytes = Bytes::immediate(size, imm);
        if reg == Gpr::Rax {
            return self.encode_o(Op::one(0xa8).sized(size), size, reg, bytes);
        }
        self.encode_r(Op::one(0xf6).sized(size), size, Field::Digit(0), reg, bytes);
    }

    /// `test [mem], imm`; the immediate is truncated to `size`, or sign-extended to 64 bits.
    pub fn test_mi(&mut self, size: impl Into<OpSize>, mem: Mem, imm: i32) {
        let size = size.into();
        self.encode_m(Op::one(0xf6).sized(size), size, Field::Digit(0), mem, Bytes::immediate(size, imm));
    }

    /// `imul dst, src`: the low half of the product.
    pub fn imul_rr(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.encode_r(Op::of(0xaf), width.into(), Field::Reg(dst), src, Bytes::NONE);
    }

    /// `imul dst, src, imm`: the low half of the product.
    pub fn imul_rri(&mut self, width: Width, dst: Gpr, src: Gpr, imm: i32) {
        let (op, bytes) = match i8::try_from(imm) {
            Ok(short) => (Op::one(0x6b), Bytes::byte(short as u8)),
            Err(_) => (Op::one(0x69), Bytes::dword(imm as u32)),
        };
        self.encode_r(op, width.into(), Field::Reg(dst), src, bytes);
    }

    /// `mul reg`: unsigned, rax times `reg` to rdx:rax, or to ax for bytes.
    pub fn mul(&mut self, size: impl Into<OpSize>, reg: Gpr) {
        self.unary(4, size.into(), reg);
    }

    /// `mulx high, low, src`: unsigned, rdx times `src`; preserves the flags. If both destinations are the same register, it
    /// receives the high half. Requires BMI2.
    pub fn mulx(&mut self, width: Width, high: Gpr, low: Gpr, src: Gpr) {
        self.encode_vex(Vex { prefix: 3, map: 2, opcode: 0xf6 }, width, high, src, low, Bytes::NONE);
    }

    /// `div reg`: unsigned, rdx:rax by `reg`, or ax for bytes. Quotient in rax and remainder in rdx, or in al and ah.
    pub fn div(&mut self, size: impl Into<OpSize>, reg: Gpr) {
        self.unary(6, size.into(), reg);
    }

    /// `idiv reg`: as [`div`](Assembler::div), signed, rounding towards zero.
    pub fn idiv(&mut self, size: impl Into<OpSize>, reg: Gpr) {
        self.unary(7, size.into(), reg);
    }

    /// `neg reg`
    pub fn neg(&mut self, size: impl Into<OpSize>, reg: Gpr) {
        self.unary(3, size.into(), reg);
    }

    fn unary(&mut self, digit: u8, size: OpSize, reg: Gpr) {
        self.encode_r(Op::one(0xf6).sized(size), size, Field::Digit(digit), reg, Bytes::NONE);
    }

    /// `inc [mem]`. Preserves the carry flag.
    pub fn inc_m(&mut self, size: impl Into<OpSize>, mem: Mem) {
        let size = size.into();
        self.encode_m(Op::one(0xfe).sized(size), size, Field::Digit(0), mem, Bytes::NONE);
    }

    /// `cdq` or `cqo`: sign-extends eax or rax into edx or rdx.
    pub fn sign_to_rdx(&mut self, width: Width) {
        self.encode_o(Op::one(0x99), width.into(), Gpr::Rax, Bytes::NONE);
    }

    /// `setcc reg`: sets its low byte to 0 or 1; preserves the others.
    pub fn setcc(&mut self, cond: Cond, reg: Gpr) {
        self.encode_r(Op::of(0x90 + cond as u8), OpSize::B8, Field::Digit(0), reg, Bytes::NONE);
    }

    /// `cmovcc dst, src`. At 32 bits the upper half of `dst` is zeroed even if the condition is false.
    pub fn cmovcc(&mut self, cond: Cond, width: Width, dst: Gpr, src: Gpr) {
        self.encode_r(Op::of(0x40 + cond as u8), width.into(), Field::Reg(dst), src, Bytes::NONE);
    }
}
