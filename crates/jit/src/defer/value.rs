//! What is known of registers whose value was not computed yet.

use paceline_isa::{Reg, Size, SwapOrder, Width, eval};

use crate::x64::{Held, Scale};

/// The value of a BPF register, in terms of what its native register and others hold. What is made from a native register has
/// the note of what that held, so that the value cannot be computed from anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Dead: it was not materialized, as no instruction reads it.
    Dead,
    /// Its native register holds it.
    Held(Held),
    /// A number.
    Const(u64),
    /// An address with a displacement.
    Sum(Base, i32),
    /// Bytes that are still in memory.
    Bytes(Bytes),
    /// Its native register holds this many of its bytes in the other order, and zeros above.
    Reversed(Size, Held),
    /// What is in a register's native register, shifted.
    Shifted(Shifted),
    /// The address at which helpers call the function that starts at a slot.
    Function(usize),
}

/// A shift by a number, which may become a half of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shifted {
    pub(crate) base: Reg,
    /// What is shifted.
    pub(crate) held: Held,
    /// Of what is shifted; the rest of the result is zero.
    pub(crate) width: Width,
    pub(crate) way: Way,
    /// By how many bits, fewer than the width has.
    pub(crate) count: u8,
    /// How many low bits of the result may be other than zero.
    pub(crate) bits: u8,
}

/// Which way a shift goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Left,
    Right,
}

impl Shifted {
    /// The scale and the register of an address that has this number added to it.
    pub(crate) fn index(&self) -> Option<(Held, Scale)> {
        // Nothing was cut off if it may not even have all bits of its width.
        let whole = self.width == Width::W64 || self.bits < 32;
        let scale = match (self.way, self.count) {
            (Way::Left, 1) => Scale::Two,
            (Way::Left, 2) => Scale::Four,
            (Way::Left, 3) => Scale::Eight,
            _ => return None,
        };
        whole.then_some((self.held, scale))
    }

    /// By how many bits to the left this and another shift together rotate, if they do.
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

/// What an address counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// What is in a register's native register, whether that is its value or not.
    Reg(Reg, Held),
    /// The frame pointer.
    Frame,
    /// What is in a native register that no BPF register is in: the loop's own.
    Native(Held),
}

impl Base {
    pub(crate) fn is(self, reg: Reg) -> bool {
        matches!(self, Self::Reg(base, _) if base == reg)
    }
}

impl Value {
    /// Whether it is made from what is in a BPF register's native register, perhaps another one's.
    pub(crate) fn is_made(&self) -> bool {
        match self {
            Self::Sum(base, _) | Self::Bytes(Bytes { base, .. }) => matches!(base, Base::Reg(..)),
            Self::Shifted(_) => true,
            Self::Dead | Self::Held(_) | Self::Const(_) | Self::Reversed(..) | Self::Function(_) => false,
        }
    }

    /// Whether it is made from what is in this register's.
    pub(crate) fn uses(&self, reg: Reg) -> bool {
        match self {
            Self::Sum(base, _) | Self::Bytes(Bytes { base, .. }) => base.is(reg),
            Self::Shifted(shifted) => shifted.base == reg,
            Self::Dead | Self::Held(_) | Self::Const(_) | Self::Reversed(..) | Self::Function(_) => false,
        }
    }
}

/// No byte of memory: zero.
const ZERO: u8 = u8::MAX;

/// A number of bytes in memory, in any order: what loads of single bytes, shifts and `or` put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) base: Base,
    pub(crate) disp: i32,
    /// For each byte of the number, from the least significant, its distance from `base + disp`.
    from: [u8; 8],
    /// Bits of the number that count; the others are zero.
    mask: u64,
    /// What is added, wrapping at a width.
    pub(crate) plus: Option<(Width, i32)>,
}

/// How a number can be had by one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) size: Size,
    /// Whether the bytes are in the other order.
    pub(crate) reversed: bool,
    /// From the base.
    pub(crate) disp: i32,
    /// Bits that what was loaded, in order, is shifted to the left by.
    pub(crate) shift: u8,
    /// What remains of that before the shift, if not everything does.
    pub(crate) mask: Option<u64>,
}

impl Bytes {
    pub(crate) fn new(base: Base, disp: i32, size: Size) -> Self {
        let mut from = [ZERO; 8];
        (0..).zip(&mut from).take(size.bytes()).for_each(|(i, byte)| *byte = i);
        Self { base, disp, from, mask: u64::MAX, plus: None }
    }

    /// How many bits may be other than zero.
    pub(crate) fn bits(&self) -> u8 {
        match self.plus {
            Some((Width::W32, _)) => 32,
            Some((Width::W64, _)) => 64,
            None => 64 - self.counting().leading_zeros() as u8,
        }
    }

    /// The bits that may be other than zero.
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

    /// Only the bits of a mask.
    pub(crate) fn and(self, mask: u64) -> Option<Self> {
        self.plus.is_none().then(|| self.with(self.from, self.mask & mask))
    }

    /// Shifted by whole bytes.
    pub(crate) fn shl(self, bits: u32) -> Option<Self> {
        if self.plus.is_some() || !bits.is_multiple_of(8) || bits >= 64 {
            return None;
        }
        let mut from = [ZERO; 8];
        let count = (bits / 8) as usize;
        from[count..].copy_from_slice(&self.from[..8 - count]);
        Some(self.with(from, self.mask << bits))
    }

    /// The same to the right.
    pub(crate) fn shr(self, bits: u32) -> Option<Self> {
        if self.plus.is_some() || !bits.is_multiple_of(8) || bits >= 64 {
            return None;
        }
        let mut from = [ZERO; 8];
        let count = (bits / 8) as usize;
        from[..8 - count].copy_from_slice(&self.from[count..]);
        Some(self.with(from, self.mask >> bits))
    }

    /// In the other byte order, as by `be16` and the like.
    pub(crate) fn reverse(self, size: Size) -> Option<Self> {
        let low = self.and(eval::zero_extend(size, u64::MAX))?;
        let mut from = low.from;
        from[..size.bytes()].reverse();
        Some(low.with(from, eval::swap(SwapOrder::Always, size, low.mask)))
    }

    /// Both numbers together, where no bit is in both.
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

    /// The one load that it takes, if one is enough.
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

    /// The bytes one by one: where each is from the base, and where it goes in bits.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (i32, u8)> {
        let (disp, from) = (self.disp, self.from);
        let part = move |(i, byte): (u8, u8)| Some((disp.checked_add(i32::from(byte))?, 8 * i));
        (0..8_u8).zip(from).filter(|(_, byte)| *byte != ZERO).filter_map(part)
    }

    pub(crate) fn mask(&self) -> u64 {
        self.counting()
    }
}
