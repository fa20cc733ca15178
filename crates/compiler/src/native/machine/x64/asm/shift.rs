use super::assembler::Assembler;
use super::bytes::Bytes;
use super::encode::{Field, Op, Vex};
use super::reg::{Gpr, OpSize};
use crate::native::machine::operand::Width;

/// Shifts and rotations, with their numbers in the encoding. Counts are modulo 64 at 64 bits, otherwise modulo 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Shift {
    Rol = 0,
    Ror = 1,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

impl Shift {
    /// All operations.
    pub const ALL: [Shift; 5] = [Shift::Rol, Shift::Ror, Shift::Shl, Shift::Shr, Shift::Sar];
}

/// BMI2 shifts, with the count in any register; they preserve the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum ShiftX {
    Shlx,
    Shrx,
    Sarx,
}

impl ShiftX {
    /// All operations.
    pub const ALL: [ShiftX; 3] = [ShiftX::Shlx, ShiftX::Shrx, ShiftX::Sarx];
}

impl Assembler {
    /// `op reg, count`
    pub fn shift_ri(&mut self, op: Shift, size: impl Into<OpSize>, reg: Gpr, count: u8) {
        let size = size.into();
        let (opcode, bytes) = if count == 1 { (0xd0, Bytes::NONE) } else { (0xc0, Bytes::byte(count)) };
        self.encode_r(Op::one(opcode).sized(size), size, Field::Digit(op as u8), reg, bytes);
    }

    /// `op reg, cl`
    pub fn shift_rcl(&mut self, op: Shift, size: impl Into<OpSize>, reg: Gpr) {
        let size = size.into();
        self.encode_r(Op::one(0xd2).sized(size), size, Field::Digit(op as u8), reg, Bytes::NONE);
    }

    /// `shlx`, `shrx` or `sarx dst, src, count`. Requires BMI2.
    pub fn shiftx(&mut self, op: ShiftX, width: Width, dst: Gpr, src: Gpr, count: Gpr) {
        let prefix = match op {
            ShiftX::Shlx => 1,
            ShiftX::Sarx => 2,
            ShiftX::Shrx => 3,
        };
        self.encode_vex(Vex { prefix, map: 2, opcode: 0xf7 }, width, dst, src, count, Bytes::NONE);
    }

    /// `rorx dst, src, count`: preserves the flags. Requires BMI2.
    pub fn rorx(&mut self, width: Width, dst: Gpr, src: Gpr, count: u8) {
        // The unused second operand is encoded as register 0.
        let op = Vex { prefix: 3, map: 3, opcode: 0xf0 };
        self.encode_vex(op, width, dst, src, Gpr::Rax, Bytes::byte(count));
    }

    /// `bswap reg`: reverses the byte order.
    pub fn bswap(&mut self, width: Width, reg: Gpr) {
        self.encode_o(Op::of(0xc8), width.into(), reg, Bytes::NONE);
    }
}
