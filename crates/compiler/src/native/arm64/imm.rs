//! Immediates: which numbers instructions can have in them, and registers set to any number.

use super::alu::Logic;
use super::assembler::Assembler;
use super::assembler::sf;
use super::reg::Gpr;
use crate::native::x64::Width;

/// The field of an immediate of `add`, `sub` and `cmp`: 12 bits, or 12 bits above 12 zeros.
#[must_use]
pub const fn arith_imm(number: u64) -> Option<u32> {
    match number {
        0..0x1000 => Some((number as u32) << 10),
        0x1000..0x100_0000 if number & 0xfff == 0 => Some(1 << 22 | ((number >> 12) as u32) << 10),
        _ => None,
    }
}

/// The field of an immediate of `and`, `orr`, `eor` and `tst`: an element of 2 to 64 bits again and again, which is a rotated run of
/// ones. Of a number for 32 bits the low half counts.
#[must_use]
pub fn logic_imm(width: Width, number: u64) -> Option<u32> {
    let number = match width {
        Width::D32 => number & 0xffff_ffff | number << 32,
        Width::Q64 => number,
    };
    if matches!(number, 0 | u64::MAX) {
        return None;
    }
    // The shortest element that is repeated.
    let mut size = 64;
    while size > 2 && number == number.rotate_left(size / 2) {
        size /= 2;
    }
    let mask = u64::MAX >> (64 - size);
    let element = number & mask;
    let ones = element.count_ones();
    let run = (1_u64 << ones) - 1;
    let rotated_right = |by: u32| (run >> by | run << ((size - by) % size)) & mask;
    let rotation =
        (0..size).find(|by| if *by == 0 { run == element } else { rotated_right(*by) == element })?;
    // The length of the element is in the bits above the run's: 0 for 32, 10 for 16, 110 for 8, and so on; N is set for 64.
    let n = u32::from(size == 64);
    let imms = (!(2 * size - 1) & 0x3f) | (ones - 1);
    Some(n << 22 | rotation << 16 | imms << 10)
}

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
