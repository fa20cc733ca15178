//! Deferred values of registers.

use paceline_isa::{Reg, Size, SwapOrder, Width, eval};

use crate::x64::{Held, Scale};

/// The value of a BPF register, in terms of the contents of native registers. A value that depends on a native register records the
/// number of its contents, so that it cannot be computed from any other contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Dead: not materialized, because no instruction reads it.
    Dead,
    /// Materialized in its native register.
    Held(Held),
    /// A constant.
    Const(u64),
    /// An address with a displacement.
    Sum(Base, i32),
    /// Bytes that are still in memory.
    Bytes(Bytes),
    /// The native register holds this many bytes in reversed order, zero-extended.
    Reversed(Size, Held),
    /// The contents of a register's native register, shifted.
    Shifted(Shifted),
    /// The callback address of the function that starts at a slot.
    Function(usize),
}

/// A shift by a constant, which may become half of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shifted {
    pub(crate) base: Reg,
    /// The contents that are shifted.
    pub(crate) held: Held,
    /// Width of the shift; the result is zero-extended.
    pub(crate) width: Width,
    pub(crate) way: Way,
    /// Shift count in bits, less than the width.
    pub(crate) count: u8,
    /// Upper bound for the number of significant bits of the result.
    pub(crate) bits: u8,
}

/// Direction of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Left,
    Right,
}

impl Shifted {
    /// The register and scale of an address with this value as its scaled index.
    pub(crate) fn index(&self) -> Option<(Held, Scale)> {
        // The shift lost no bits of its width, as the result does not even use all of them.
        let whole = self.width == Width::W64 || self.bits < 32;
        let scale = match (self.way, self.count) {
            (Way::Left, 1) => Scale::Two,
            (Way::Left, 2) => Scale::Four,
            (Way::Left, 3) => Scale::Eight,
            _ => return None,
        };
        whole.then_some((self.held, scale))
    }

    /// Count in bits of the left rotation that this and another shift form together, if they do.
    pub(crate) fn rotation(&self, other: &Self) -> Option<u8> {
        let (left, right) = match (self.way, other.way) {
            (Way::Left, Way::Right) => (self, other),
            (Way::Right, Way::Left) => (other, self),
            _ => return None,
        };
        let bits = if left.width == Width::W64 { 64 } else { 32 };
        let same = left.held == right.held && left.width == right.width;
        (same && left.count != 0 && left.count + right.count == bits).then_some(left.count)
    }
}

/// Base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The contents of a register's native register, whether or not they are its value.
    Reg(Reg, Held),
    /// The frame pointer.
    Frame,
    /// The contents of a native register that no BPF register is assigned to: one reserved by the loop.
    Native(Held),
}

impl Base {
    pub(crate) fn is(self, reg: Reg) -> bool {
        matches!(self, Self::Reg(base, _) if base == reg)
    }
}

impl Value {
    /// Whether the value depends on the contents of any BPF register's native register.
    pub(crate) fn is_made(&self) -> bool {
        match self {
            Self::Sum(base, _) | Self::Bytes(Bytes { base, .. }) => matches!(base, Base::Reg(..)),
            Self::Shifted(_) => true,
            Self::Dead | Self::Held(_) | Self::Const(_) | Self::Reversed(..) | Self::Function(_) => false,
        }
    }

    /// Whether the value depends on the contents of this register's native register.
    pub(crate) fn uses(&self, reg: Reg) -> bool {
        match self {
            Self::Sum(base, _) | Self::Bytes(Bytes { base, .. }) => base.is(reg),
            Self::Shifted(shifted) => shifted.base == reg,
            Self::Dead | Self::Held(_) | Self::Const(_) | Self::Reversed(..) | Self::Function(_) => false,
        }
    }
}

/// Marks a byte that is not from memory, but zero.
const ZERO: u8 = u8::MAX;

/// A number composed of bytes in memory in any order, as loads of single bytes, shifts and `or` produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) base: Base,
    pub(crate) disp: i32,
    /// For each byte of the number, least significant first, its offset from `base + disp`.
    from: [u8; 8],
    /// Bits that are kept; the others are zero.
    mask: u64,
    /// An addend, with wrap-around at a width.
    pub(crate) plus: Option<(Width, i32)>,
}

/// A composition that one load can produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) size: Size,
    /// Whether the byte order is reversed.
    pub(crate) reversed: bool,
    /// Displacement from the base in bytes.
    pub(crate) disp: i32,
    /// Left shift of the loaded and, if reversed, byte-swapped number, in bits.
    pub(crate) shift: u8,
    /// Mask for the number before the shift, if not all bits are kept.
    pub(crate) mask: Option<u64>,
}

impl Bytes {
    pub(crate) fn new(base: Base, disp: i32, size: Size) -> Self {
        let mut from = [ZERO; 8];
        (0..).zip(&mut from).take(size.bytes()).for_each(|(i, byte)| *byte = i);
        Self { base, disp, from, mask: u64::MAX, plus: None }
    }

    /// Upper bound for the number of significant bits.
    pub(crate) fn bits(&self) -> u8 {
        match self.plus {
            Some((Width::W32, _)) => 32,
            Some((Width::W64, _)) => 64,
            None => 64 - self.counting().leading_zeros() as u8,
        }
    }

    /// Mask of the bits that may be nonzero.
    fn counting(&self) -> u64 {
        let there = (0..8).filter(|&i| self.from[i] != ZERO).fold(0, |all, i| all | 0xff << (8 * i));
        there & self.mask
    }

    fn with(self, from: [u8; 8], mask: u64) -> Self {
        let mut new = Self { from, mask, ..self };
        for (i, byte) in new.from.iter_mut().enumerate() {
            if mask >> (8 * i) & 0xff == 0 {
                *byte = ZERO;
            }
        }
        new
    }

    /// The number with a mask applied.
    pub(crate) fn and(self, mask: u64) -> Option<Self> {
        self.plus.is_none().then(|| self.with(self.from, self.mask & mask))
    }

    /// Shifted left by whole bytes.
    pub(crate) fn shl(self, bits: u32) -> Option<Self> {
        if self.plus.is_some() || !bits.is_multiple_of(8) || bits >= 64 {
            return None;
        }
        let mut from = [ZERO; 8];
        let count = (bits / 8) as usize;
        from[count..].copy_from_slice(&self.from[..8 - count]);
        Some(self.with(from, self.mask << bits))
    }

    /// Shifted right by whole bytes.
    pub(crate) fn shr(self, bits: u32) -> Option<Self> {
        if self.plus.is_some() || !bits.is_multiple_of(8) || bits >= 64 {
            return None;
        }
        let mut from = [ZERO; 8];
        let count = (bits / 8) as usize;
        from[..8 - count].copy_from_slice(&self.from[count..]);
        Some(self.with(from, self.mask >> bits))
    }

    /// In reversed byte order, as by `be16`.
    pub(crate) fn reverse(self, size: Size) -> Option<Self> {
        let low = self.and(eval::zero_extend(size, u64::MAX))?;
        let mut from = low.from;
        from[..size.bytes()].reverse();
        Some(low.with(from, eval::swap(SwapOrder::Always, size, low.mask)))
    }

    /// The `or` of two numbers without common bits.
    pub(crate) fn or(self, other: Self) -> Option<Self> {
        let apart = self.counting() & other.counting() == 0;
        if !apart || self.base != other.base || self.plus.is_some() || other.plus.is_some() {
            return None;
        }
        let disp = self.disp.min(other.disp);
        let mut from = [ZERO; 8];
        for part in [&self, &other] {
            let moved = u8::try_from(part.disp.checked_sub(disp)?).ok()?;
            for (place, &byte) in from.iter_mut().zip(&part.from).filter(|(_, byte)| **byte != ZERO) {
                let byte = byte.checked_add(moved).filter(|&byte| byte < ZERO)?;
                if *place != ZERO && *place != byte {
                    return None;
                }
                *place = byte;
            }
        }
        Some(Self { base: self.base, disp, from, mask: self.counting() | other.counting(), plus: None })
    }

    /// The single load that produces the number, if one does.
    pub(crate) fn shape(&self) -> Option<Shape> {
        let first = self.from.iter().position(|&byte| byte != ZERO)?;
        let last = self.from.iter().rposition(|&byte| byte != ZERO)?;
        let bytes = &self.from[first..=last];
        let size = [Size::B, Size::H, Size::W, Size::Dw].into_iter().find(|s| s.bytes() == bytes.len())?;
        let rises = |(a, b): (&u8, &u8)| a.checked_add(1) == Some(*b) && *b != ZERO;
        let plain = bytes.iter().zip(&bytes[1..]).all(rises);
        let reversed = bytes.iter().rev().zip(bytes.iter().rev().skip(1)).all(rises);
        if !plain && !reversed {
            return None;
        }
        let lowest = if plain { self.from[first] } else { self.from[last] };
        let shift = 8 * first as u8;
        let all = eval::zero_extend(size, u64::MAX);
        let mask = Some(self.mask >> shift & all).filter(|mask| *mask != all);
        Some(Shape { size, reversed: !plain, disp: self.disp.checked_add(i32::from(lowest))?, shift, mask })
    }

    /// The bytes one by one: displacement from the base, and position in the number in bits.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (i32, u8)> {
        let (disp, from) = (self.disp, self.from);
        let part = move |(i, byte): (u8, u8)| Some((disp.checked_add(i32::from(byte))?, 8 * i));
        (0..8_u8).zip(from).filter(|(_, byte)| *byte != ZERO).filter_map(part)
    }

    pub(crate) fn mask(&self) -> u64 {
        self.counting()
    }
}
