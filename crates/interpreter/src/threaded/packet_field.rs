//! Fields of the packet, as one expression.
//!
//! Compilers load a field byte by byte or whole, swap, shift and mask it. All of that is one load, one swap, one shift and
//! one mask; if the field is only compared with a constant, the constant is swapped and shifted instead.

use paceline_isa::{Size, SwapOrder, eval};

/// Base of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Anchor {
    /// The packet's start.
    Start,
    /// Known value of a register.
    Register,
}

/// A number of up to 32 bits: `size` bytes of the packet, shifted and masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketField {
    pub(super) anchor: Anchor,
    /// The register, or 0.
    pub(super) register: u8,
    /// Offset of the bytes from the anchor.
    pub(super) offset: i16,
    /// One, two or four bytes.
    pub(super) size: Size,
    /// Whether the byte order is not this machine's.
    pub(super) reversed: bool,
    /// Shift to the left, or if negative to the right.
    pub(super) shift: i8,
    /// Mask after the shift: exactly the bits that can be 1.
    pub(super) mask: u32,
}

/// Equality of a field with a number: these bits of the loaded bytes have this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Equality {
    pub(super) mask: u32,
    pub(super) value: u32,
}

/// All bits of a size.
pub(super) fn all(size: Size) -> u32 {
    u32::MAX >> (32 - 8 * size.bytes().min(4))
}

impl PacketField {
    /// The field of a load; `None` for eight bytes, which no pattern needs.
    pub(super) fn loaded(anchor: Anchor, register: u8, offset: i16, size: Size) -> Option<Self> {
        let part = Self { anchor, register, offset, size, reversed: false, shift: 0, mask: all(size) };
        (size != Size::Dw).then_some(part)
    }

    fn with(self, shift: i32, mask: u64) -> Option<Self> {
        let mask = u32::try_from(mask).ok().filter(|mask| *mask != 0)?;
        (-31..32).contains(&shift).then_some(Self { shift: shift as i8, mask, ..self })
    }

    /// `None` if bits would be lost or none remains.
    pub(super) fn shifted_left(self, by: u32) -> Option<Self> {
        let mask = u64::from(self.mask).checked_shl(by).filter(|_| by < 32)?;
        self.with(i32::from(self.shift) + by as i32, mask)
    }

    pub(super) fn shifted_right(self, by: u32) -> Option<Self> {
        let mask = u64::from(self.mask).checked_shr(by)?;
        self.with(i32::from(self.shift) - by as i32, mask)
    }

    pub(super) fn masked(self, bits: u32) -> Option<Self> {
        self.with(i32::from(self.shift), u64::from(self.mask & bits))
    }

    /// The field with reversed bytes, if it has no others.
    pub(super) fn swapped(self, size: Size) -> Option<Self> {
        let whole = self.size == size && self.shift == 0 && self.mask == all(size);
        whole.then_some(Self { reversed: !self.reversed, ..self })
    }

    /// Two fields combined, if they are adjacent in the packet and in the number.
    pub(super) fn joined(self, other: Self) -> Option<Self> {
        let (first, second) = if self.offset < other.offset { (self, other) } else { (other, self) };
        let size = match first.size {
            Size::B => Size::H,
            Size::H => Size::W,
            Size::W | Size::Dw => return None,
        };
        let (bytes, bits) = (first.size.bytes() as i16, 8 * first.size.bytes() as i8);
        let adjacent = (first.anchor, first.register, first.size)
            == (second.anchor, second.register, second.size)
            && first.offset.checked_add(bytes) == Some(second.offset);
        // One byte has no order.
        let big = |part: Self| part.size == Size::B || part.reversed == cfg!(target_endian = "little");
        let little = |part: Self| part.size == Size::B || part.reversed == cfg!(target_endian = "big");
        let (shift, is_big) = if big(first) && big(second) && first.shift == second.shift + bits {
            (second.shift, true)
        } else if little(first) && little(second) && second.shift == first.shift + bits {
            (first.shift, false)
        } else {
            return None;
        };
        let reversed = is_big == cfg!(target_endian = "little");
        adjacent.then_some(Self { size, reversed, shift, mask: first.mask | second.mask, ..first })
    }

    /// The test for a number; `None` if the field never equals it.
    pub(super) fn equals(self, number: u32) -> Option<Equality> {
        let raw = |bits: u32| {
            let by = u32::from(self.shift.unsigned_abs());
            let bits = if self.shift < 0 { u64::from(bits) << by } else { u64::from(bits) >> by };
            if self.reversed { eval::swap(SwapOrder::Always, self.size, bits) as u32 } else { bits as u32 }
        };
        (number & !self.mask == 0).then(|| Equality { mask: raw(self.mask), value: raw(number) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(offset: i16) -> Option<PacketField> {
        PacketField::loaded(Anchor::Start, 0, offset, Size::B)
    }

    /// The value of the field in some bytes, by its definition.
    fn value(part: PacketField, bytes: [u8; 8]) -> u64 {
        let at = part.offset as usize;
        let big = (part.reversed == cfg!(target_endian = "little")) && part.size != Size::B;
        let field = &bytes[at..at + part.size.bytes()];
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let number = if big { field.iter().fold(0, join) } else { field.iter().rev().fold(0, join) };
        let by = u32::from(part.shift.unsigned_abs());
        let shifted = if part.shift < 0 { number >> by } else { number << by };
        shifted & u64::from(part.mask)
    }

    const BYTES: [u8; 8] = [0x81, 0x42, 0xc3, 0x24, 0xe5, 0x16, 0x97, 0x68];

    #[test]
    fn bytes_join_to_numbers_of_both_orders() {
        let big = byte(1).unwrap().shifted_left(8).unwrap().joined(byte(2).unwrap()).unwrap();
        assert_eq!(value(big, BYTES), 0x42c3);
        let little = byte(2).unwrap().shifted_left(8).unwrap().joined(byte(1).unwrap()).unwrap();
        assert_eq!(value(little, BYTES), 0xc342);
        let low = byte(3).unwrap().shifted_left(8).unwrap().joined(byte(4).unwrap()).unwrap();
        let word = big.shifted_left(16).unwrap().joined(low).unwrap();
        assert_eq!(value(word, BYTES), 0x42c3_24e5);
        assert_eq!(word.swapped(Size::W).map(|part| value(part, BYTES)), Some(0xe524_c342));
    }

    #[test]
    fn what_is_not_side_by_side_does_not_join() {
        let (first, third) = (byte(0).unwrap(), byte(2).unwrap());
        assert_eq!(first.shifted_left(8).unwrap().joined(third), None);
        assert_eq!(first.joined(byte(1).unwrap()), None, "the same bits of the number");
        let elsewhere = PacketField { anchor: Anchor::Register, register: 3, ..byte(1).unwrap() };
        assert_eq!(first.shifted_left(8).unwrap().joined(elsewhere), None);
    }

    #[test]
    fn shifts_and_masks_are_one_of_each() {
        let length = byte(4).unwrap().masked(0xf).unwrap().shifted_left(2).unwrap();
        assert_eq!(value(length, BYTES), (0xe5 & 0xf) << 2);
        let offset = byte(4).unwrap().masked(0xf0).unwrap().shifted_right(2).unwrap();
        assert_eq!(value(offset, BYTES), (0xe5 & 0xf0) >> 2);
        let back = offset.shifted_left(4).unwrap();
        assert_eq!(value(back, BYTES), ((0xe5 & 0xf0) >> 2) << 4);
        assert_eq!(byte(4).unwrap().shifted_right(8), None, "nothing is left");
        assert_eq!(byte(4).unwrap().shifted_left(25), None, "a bit is lost");
    }

    #[test]
    fn equality_is_of_the_bytes_as_they_lie() {
        let half = PacketField::loaded(Anchor::Start, 0, 0, Size::H).unwrap();
        let network = if cfg!(target_endian = "little") { half.swapped(Size::H).unwrap() } else { half };
        let of = |mask: u16, value: u16| Equality {
            mask: u16::from_ne_bytes(mask.to_be_bytes()).into(),
            value: u16::from_ne_bytes(value.to_be_bytes()).into(),
        };
        assert_eq!(network.equals(0x0800), Some(of(0xffff, 0x0800)));
        assert_eq!(network.masked(0x1fff).unwrap().equals(0x12), Some(of(0x1fff, 0x12)));
        assert_eq!(network.masked(0x1fff).unwrap().equals(0x2000), None);
        let shifted = network.masked(0xfff0).unwrap().shifted_right(4).unwrap();
        assert_eq!(shifted.equals(0x123), Some(of(0xfff0, 0x1230)));
    }
}
