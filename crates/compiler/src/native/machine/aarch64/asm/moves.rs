//! Registers set to any number.

use super::alu::Logic;
use super::assembler::{Assembler, sf};
use super::imm::logic_imm;
use super::reg::Gpr;
use crate::native::machine::operand::Width;

impl Assembler {
    /// Sets a register to a number, in one to four instructions; the flags stay.
    pub fn mov_imm(&mut self, rd: Gpr, number: u64) {
        let halves = [0, 1, 2, 3].map(|half| (number >> (16 * half)) as u16);
        let count = |of: u16| halves.iter().filter(|half| **half == of).count();
        let (zeros, ones) = (count(0), count(u16::MAX));
        if zeros < 3 && ones < 3 {
            if let Some(field) = logic_imm(Width::Q64, number) {
                return self.logic_field(Logic::Orr, Width::Q64, rd, Gpr::Zr, field);
            }
            // Ones in the low half only.
            if number >> 32 == 0 && halves[1] == u16::MAX {
                return self.mov_wide(0, Width::D32, rd, 0, !halves[0]);
            }
        }
        let inverted = ones > zeros;
        let rest = if inverted { u16::MAX } else { 0 };
        // default: a number of equal halves begins with the first one.
        let first = (0..4).find(|half| halves[*half] != rest).unwrap_or(0);
        let bits = halves[first];
        let (opc, field) = if inverted { (0, !bits) } else { (2, bits) };
        self.mov_wide(opc, Width::Q64, rd, first as u32, field);
        for (half, bits) in (0..).zip(halves).skip(first + 1).filter(|(_, bits)| *bits != rest) {
            self.mov_wide(3, Width::Q64, rd, half, bits);
        }
    }

    /// `movn` (0), `movz` (2) or `movk` (3) of a half word.
    fn mov_wide(&mut self, opc: u32, width: Width, rd: Gpr, half: u32, bits: u16) {
        let rd = self.r(rd);
        self.put(0x1280_0000 | sf(width) | opc << 29 | half << 21 | u32::from(bits) << 5 | rd);
    }
}
