//! Parts of instructions.

use super::reg::OpSize;

/// Up to eight bytes in memory order.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) bits: u64,
    pub(super) len: u32,
}

impl Bytes {
    pub(super) const NONE: Bytes = Bytes { bits: 0, len: 0 };

    #[inline]
    pub(super) const fn byte(value: u8) -> Bytes {
        Bytes { bits: value as u64, len: 1 }
    }

    #[inline]
    pub(super) const fn pair(first: u8, second: u8) -> Bytes {
        Bytes { bits: first as u64 | (second as u64) << 8, len: 2 }
    }

    #[inline]
    pub(super) const fn dword(value: u32) -> Bytes {
        Bytes { bits: value as u64, len: 4 }
    }

    /// The low bits of an immediate of this size; for 64 bits a 32-bit one, which is sign-extended.
    #[inline]
    pub(super) fn immediate(size: OpSize, value: i32) -> Bytes {
        match size {
            OpSize::B8 => Bytes::byte(value as u8),
            OpSize::W16 => Bytes { bits: value as u16 as u64, len: 2 },
            OpSize::D32 | OpSize::Q64 => Bytes::dword(value as u32),
        }
    }

    /// Concatenation; at most eight bytes in total.
    #[inline]
    pub(super) const fn then(self, next: Bytes) -> Bytes {
        Bytes { bits: self.bits | next.bits << (8 * self.len), len: self.len + next.len }
    }

    #[inline]
    pub(super) const fn then_if(self, present: bool, value: u8) -> Bytes {
        self.then(Bytes { bits: value as u64 * present as u64, len: present as u32 })
    }
}
