//! Comparisons of one field of the packet with a number, and packets in which the field has another value.

use paceline_capture::packet::Layers;
use paceline_isa::Condition;

use crate::explain::jump::Jump;
use crate::explain::origin::{PacketBits, Source};

/// A comparison of bits of the packet with a number.
pub(crate) struct Comparison<'a> {
    pub(crate) bits: &'a PacketBits,
    pub(crate) condition: Condition,
    pub(crate) number: u64,
    /// Whether it held.
    pub(crate) holds: bool,
}

impl<'a> Comparison<'a> {
    /// The comparison of a jump, if it is one of bits that the program only moved with a number that the path gives.
    pub(crate) fn of(jump: &'a Jump) -> Option<Self> {
        let (left, right) = (&jump.left, &jump.right);
        let (origin, value, number, condition) = match (left.0.sources.len(), right.0.sources.len()) {
            (1, 0) => (&left.0, left.1, right.1, jump.condition),
            (0, 1) => (&right.0, right.1, left.1, jump.condition.exchanged()),
            _ => return None,
        };
        let Source::Packet(bits) = &**origin.sources.first()? else { return None };
        (bits.number() == Some(value)).then_some(Self { bits, condition, number, holds: jump.taken })
    }

    /// Whether the bits are the number.
    pub(crate) fn is_equal(&self) -> bool {
        matches!((self.condition, self.holds), (Condition::Eq, true) | (Condition::Ne, false))
    }

    /// The number that the bits are not, as text of the field of a path.
    pub(crate) fn unequal(&self, path: &str) -> Option<String> {
        if !matches!((self.condition, self.holds), (Condition::Eq, false) | (Condition::Ne, true)) {
            return None;
        }
        let packet = self.bits.patched(self.number)?;
        Layers::new(&packet).field(path).map(|field| field.to_string())
    }
}

impl PacketBits {
    /// The number that the program has made of the bits; `None` for more than 8 bytes.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(crate::explain::origin::shifted(self.loaded()? & self.mask, self.shift))
    }

    /// The number as it was loaded, with its bytes in the order that the program gave them.
    fn loaded(&self) -> Option<u64> {
        let bytes = self.packet.get(self.offset..self.offset + self.len)?;
        let mut all = [0; 8];
        all.get_mut(..self.len)?.copy_from_slice(bytes);
        let number = u64::from_le_bytes(all);
        Some(if self.swapped { number.swap_bytes() >> (64 - 8 * self.len) } else { number })
    }

    /// The packet with the bits such that the program makes this number of them; `None` if they cannot be.
    pub(crate) fn patched(&self, number: u64) -> Option<Vec<u8>> {
        let bits = crate::explain::origin::shifted(number, -self.shift);
        if bits & !self.mask != 0 || crate::explain::origin::shifted(bits, self.shift) != number {
            return None;
        }
        let loaded = self.loaded()? & !self.mask | bits;
        let loaded = if self.swapped { loaded.swap_bytes() >> (64 - 8 * self.len) } else { loaded };
        let mut packet = self.packet.to_vec();
        packet
            .get_mut(self.offset..self.offset + self.len)?
            .copy_from_slice(loaded.to_le_bytes().get(..self.len)?);
        Some(packet)
    }
}
