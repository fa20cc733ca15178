//! Immediates: which numbers instructions can have in them.

use crate::native::machine::operand::Width;

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
