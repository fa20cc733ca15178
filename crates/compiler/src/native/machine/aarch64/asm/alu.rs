//! Arithmetic.

use super::assembler::{Assembler, sf};
use super::imm::{arith_imm, logic_imm};
use super::reg::{Cond, Gpr};
use crate::native::machine::operand::Width;

/// Sums and differences; those with an `s` set the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Arith {
    Add = 0,
    Adds = 1,
    Sub = 2,
    Subs = 3,
}

/// Operations on bits; `ands` sets the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Logic {
    And = 0,
    Orr = 1,
    Eor = 2,
    Ands = 3,
}

/// Shifts and rotations; the count is taken modulo the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Shift {
    Lsl = 0,
    Lsr = 1,
    Asr = 2,
    Ror = 3,
}

/// Divisions. A quotient by 0 is 0, and the smallest number divided by -1 is itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the mnemonics")]
pub enum Divide {
    Udiv = 2,
    Sdiv = 3,
}

impl Assembler {
    /// `op rd, rn, rm, lsl #shift`; the shift is below the width.
    pub fn arith(&mut self, op: Arith, width: Width, rd: Gpr, rn: Gpr, rm: Gpr, shift: u8) {
        let base = 0x0b00_0000 | (op as u32) << 29;
        self.three(base | u32::from(shift & 63) << 10, width, rd, rn, rm);
    }

    /// `op rd, rn, wm, sxtw` or `op rd, rn, xm` on 64 bits; `rn` may be the stack pointer, as may `rd` of those that set no flags.
    pub fn arith_extended(&mut self, op: Arith, rd: Gpr, rn: Gpr, rm: Gpr, is_word: bool) {
        let (rd, rn, rm) = (self.result(op, rd), self.s(rn), self.r(rm));
        let option = if is_word { 6 } else { 3 };
        self.put(0x8b20_0000 | (op as u32) << 29 | rm << 16 | option << 13 | rn << 5 | rd);
    }

    /// `op rd, rn, #number`, for numbers that [`arith_imm`] has a field for; `rn` may be the stack pointer, as may `rd` of those that
    /// set no flags.
    pub fn arith_imm(&mut self, op: Arith, width: Width, rd: Gpr, rn: Gpr, number: u64) {
        let (rd, rn) = (self.result(op, rd), self.s(rn));
        let Some(field) = arith_imm(number) else { return self.fail_operand() };
        self.put(0x1100_0000 | sf(width) | (op as u32) << 29 | field | rn << 5 | rd);
    }

    /// The number of a sum's register: zero takes a result that only sets the flags.
    fn result(&mut self, op: Arith, rd: Gpr) -> u32 {
        match op {
            Arith::Add | Arith::Sub => self.s(rd),
            Arith::Adds | Arith::Subs => self.r(rd),
        }
    }

    /// `op rd, rn, rm`
    pub fn logic(&mut self, op: Logic, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x0a00_0000 | (op as u32) << 29, width, rd, rn, rm);
    }

    /// `op rd, rn, #number`, for numbers that [`logic_imm`] has a field for.
    pub fn logic_imm(&mut self, op: Logic, width: Width, rd: Gpr, rn: Gpr, number: u64) {
        match logic_imm(width, number) {
            Some(field) => self.logic_field(op, width, rd, rn, field),
            None => self.fail_operand(),
        }
    }

    pub(super) fn logic_field(&mut self, op: Logic, width: Width, rd: Gpr, rn: Gpr, field: u32) {
        // Number 31 is the stack pointer, but where only the flags are set.
        if rd == Gpr::Zr && op != Logic::Ands {
            self.fail_operand();
        }
        let (rd, rn) = (self.r(rd), self.r(rn));
        self.put(0x1200_0000 | sf(width) | (op as u32) << 29 | field | rn << 5 | rd);
    }

    /// `mov rd, rm`; of 32 bits it clears the upper half.
    pub fn mov(&mut self, width: Width, rd: Gpr, rm: Gpr) {
        self.logic(Logic::Orr, width, rd, Gpr::Zr, rm);
    }

    /// `mul rd, rn, rm`
    pub fn mul(&mut self, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1b00_7c00, width, rd, rn, rm);
    }

    /// `umulh xd, xn, xm`: the high half of the product.
    pub fn umulh(&mut self, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1bc0_7c00, Width::Q64, rd, rn, rm);
    }

    /// `umull xd, wn, wm`: all of the product of two low halves.
    pub fn umull(&mut self, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1ba0_7c00, Width::Q64, rd, rn, rm);
    }

    /// `msub rd, rn, rm, ra`: `ra - rn * rm`
    pub fn msub(&mut self, width: Width, rd: Gpr, rn: Gpr, rm: Gpr, ra: Gpr) {
        let ra = self.r(ra);
        self.three(0x1b00_8000 | ra << 10, width, rd, rn, rm);
    }

    /// `op rd, rn, rm`
    pub fn divide(&mut self, op: Divide, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1ac0_0000 | (op as u32) << 10, width, rd, rn, rm);
    }

    /// `op rd, rn, rm`
    pub fn shift(&mut self, op: Shift, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1ac0_2000 | (op as u32) << 10, width, rd, rn, rm);
    }

    /// `op rd, rn, #count`; the count is taken modulo the width.
    pub fn shift_imm(&mut self, op: Shift, width: Width, rd: Gpr, rn: Gpr, count: u8) {
        let last = bits(width) - 1;
        let count = u32::from(count) & last;
        match op {
            Shift::Lsl => self.bitfield(false, width, rd, rn, count.wrapping_neg() & last, last - count),
            Shift::Lsr => self.bitfield(false, width, rd, rn, count, last),
            Shift::Asr => self.bitfield(true, width, rd, rn, count, last),
            // `extr rd, rn, rn, #count`
            Shift::Ror => {
                let n = u32::from(width == Width::Q64) << 22;
                self.three(0x1380_0000 | n | count << 10, width, rd, rn, rn);
            }
        }
    }

    /// `uxtb` and `uxth`: the low bits of a register with zeros above; `bits` is below the width.
    pub fn zero_extend(&mut self, rd: Gpr, rn: Gpr, bits: u8) {
        self.bitfield(false, Width::D32, rd, rn, 0, u32::from(bits.saturating_sub(1)) & 31);
    }

    /// `sxtb`, `sxth` and `sxtw`: the low bits of a register with their sign above; `bits` is below the width.
    pub fn sign_extend(&mut self, width: Width, rd: Gpr, rn: Gpr, bits: u8) {
        self.bitfield(true, width, rd, rn, 0, u32::from(bits.saturating_sub(1)) & 31);
    }

    /// `ubfm` or `sbfm rd, rn, #immr, #imms`
    fn bitfield(&mut self, signed: bool, width: Width, rd: Gpr, rn: Gpr, immr: u32, imms: u32) {
        let (rd, rn) = (self.r(rd), self.r(rn));
        let base = if signed { 0x1300_0000 } else { 0x5300_0000 };
        let n = u32::from(width == Width::Q64) << 22;
        self.put(base | sf(width) | n | immr << 16 | imms << 10 | rn << 5 | rd);
    }

    /// `rev rd, rn`: all bytes in reverse order.
    pub fn rev(&mut self, width: Width, rd: Gpr, rn: Gpr) {
        let (rd, rn) = (self.r(rd), self.r(rn));
        let opcode = if width == Width::Q64 { 3 } else { 2 };
        self.put(0x5ac0_0000 | sf(width) | opcode << 10 | rn << 5 | rd);
    }

    /// `rev16 wd, wn`: the bytes of each half word in reverse order.
    pub fn rev16(&mut self, rd: Gpr, rn: Gpr) {
        let (rd, rn) = (self.r(rd), self.r(rn));
        self.put(0x5ac0_0400 | rn << 5 | rd);
    }

    /// `csel rd, rn, rm, cond`: `rn` if the condition holds.
    pub fn csel(&mut self, cond: Cond, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        self.three(0x1a80_0000 | (cond as u32) << 12, width, rd, rn, rm);
    }

    /// `cset wd, cond`: 1 if the condition holds, and 0 otherwise.
    pub fn cset(&mut self, cond: Cond, rd: Gpr) {
        let not = cond.invert() as u32;
        self.three(0x1a80_0400 | not << 12, Width::D32, rd, Gpr::Zr, Gpr::Zr);
    }

    fn three(&mut self, base: u32, width: Width, rd: Gpr, rn: Gpr, rm: Gpr) {
        let (rd, rn, rm) = (self.r(rd), self.r(rn), self.r(rm));
        self.put(base | sf(width) | rm << 16 | rn << 5 | rd);
    }
}

const fn bits(width: Width) -> u32 {
    match width {
        Width::D32 => 32,
        Width::Q64 => 64,
    }
}
