//! Fields of some bits in bytes, most significant bit first, as RFCs draw them.

/// The number in `bits` bits from `bit` on; bits beyond the end are zero.
pub(crate) fn get(bytes: &[u8], bit: usize, bits: usize) -> u128 {
    (bit..bit + bits).fold(0, |number, at| {
        let byte = bytes.get(at / 8).copied().unwrap_or(0);
        number << 1 | u128::from(byte >> (7 - at % 8) & 1)
    })
}

/// Stores the low `bits` bits of a number from `bit` on.
pub(crate) fn set(bytes: &mut [u8], bit: usize, bits: usize, number: u128) {
    for (shift, at) in (bit..bit + bits).rev().enumerate() {
        if let Some(byte) = bytes.get_mut(at / 8) {
            let mask = 1 << (7 - at % 8);
            if number >> shift & 1 == 1 { *byte |= mask } else { *byte &= !mask }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{get, set};

    #[test]
    fn fields_of_bits_do_not_touch_each_other() {
        let mut bytes = [0xff; 4];
        set(&mut bytes, 3, 13, 0x0abc);
        assert_eq!(bytes, [0xea, 0xbc, 0xff, 0xff]);
        assert_eq!((get(&bytes, 3, 13), get(&bytes, 0, 3), get(&bytes, 30, 4)), (0x0abc, 7, 0b1100));
    }
}
