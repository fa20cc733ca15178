//! Where values come from.

use std::rc::Rc;
use std::sync::Arc;

use paceline_isa::AluOp;
use paceline_maps::Map;

/// Sources of one value that are kept: more do not explain anything.
const MOST: usize = 4;

/// A source of a value.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Bits of the packet.
    Packet(PacketBits),
    /// A field of the context.
    Context { name: &'static str, value: u64 },
    /// The end of the packet, and so its length.
    Length(usize),
    /// The element that a look-up was for.
    Element(Element),
    /// Bytes of a map's value.
    Value { element: Element, offset: usize, bytes: Vec<u8> },
    /// Memory whose contents have no name.
    Memory,
    /// The result of a function.
    Result { name: &'static str, value: u64 },
}

/// An element of a map; the map's only value where there is no key.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) map: Arc<Map>,
    pub(crate) key: Option<Vec<u8>>,
    /// Address of its value; 0 if there is none.
    pub(crate) address: u64,
    /// Whether no packet makes the key of an array lie outside of it.
    pub(crate) is_certain: bool,
}

/// Origin of the value in a register or on the stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) sources: Vec<Rc<Source>>,
    /// The element whose value it points to.
    pub(crate) element: Option<Rc<Element>>,
}

impl Origin {
    pub(crate) fn of(source: Source) -> Self {
        Self { sources: vec![Rc::new(source)], element: None }
    }

    /// Origin of a value computed from two.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        merged.element = merged.element.or_else(|| other.element.clone());
        for source in &other.sources {
            let is_known = merged.sources.iter().any(|known| Rc::ptr_eq(known, source));
            if !is_known && merged.sources.len() < MOST {
                merged.sources.push(Rc::clone(source));
            }
        }
        merged
    }
}

/// Bits of a packet that a program loaded, and what it has left of them.
#[derive(Clone, Debug)]
pub(crate) struct PacketBits {
    /// The packet when they were loaded.
    pub(crate) packet: Rc<[u8]>,
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// The bits of the loaded number that are left, where they were in it.
    pub(crate) mask: u64,
    /// Bits by which the number was shifted to the right since.
    pub(crate) shift: i32,
    /// Whether its bytes are in reversed order.
    pub(crate) swapped: bool,
}

impl PacketBits {
    pub(crate) fn new(packet: Rc<[u8]>, offset: usize, len: usize) -> Self {
        let mask = if len >= 8 { u64::MAX } else { (1 << (len * 8)) - 1 };
        Self { packet, offset, len, mask, shift: 0, swapped: false }
    }

    /// The bits after an operation with a constant, where that only moves or clears bits.
    pub(crate) fn after(&self, op: AluOp, imm: u64) -> Option<Self> {
        let mut bits = self.clone();
        match op {
            AluOp::And => bits.mask &= shifted(imm, -bits.shift),
            AluOp::Rsh | AluOp::Arsh if imm < 64 => {
                bits.shift += imm as i32;
                bits.mask &= shifted(u64::MAX, -bits.shift);
            }
            AluOp::Lsh if imm < 64 => bits.shift -= imm as i32,
            _ => return None,
        }
        Some(bits)
    }

    /// The bits after their bytes are reversed.
    pub(crate) fn reversed(&self, bytes: usize) -> Option<Self> {
        (bytes == self.len && self.shift == 0).then(|| Self {
            mask: self.mask.swap_bytes() >> (64 - 8 * bytes),
            swapped: !self.swapped,
            ..self.clone()
        })
    }

    /// The greatest number that the bits can be, whatever the packet.
    pub(crate) fn greatest(&self) -> u64 {
        shifted(self.mask, self.shift)
    }

    /// The bits of the packet, counted from its first one as RFCs do.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        let Self { offset, len, mask, swapped, .. } = *self;
        let position = move |bit: usize| {
            let byte = if swapped { (len - 1).saturating_sub(bit / 8) } else { bit / 8 };
            (offset + byte) * 8 + 7 - bit % 8
        };
        (0..len.min(8) * 8).filter(move |bit| mask >> bit & 1 == 1).map(position)
    }
}

/// Shifted to the right, or to the left by negative amounts.
pub(crate) fn shifted(number: u64, by: i32) -> u64 {
    match by {
        0.. => number.checked_shr(by.unsigned_abs()).unwrap_or(0),
        _ => number.checked_shl(by.unsigned_abs()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_keep_their_places_in_the_packet() {
        let packet: Rc<[u8]> = Rc::from([0x45, 0x12, 0x34, 0x56].as_slice());
        let positions = |bits: &PacketBits| {
            let mut all: Vec<_> = bits.positions().collect();
            all.sort_unstable();
            all
        };
        // The header length of IPv4: the low four bits of the first byte.
        let ihl = PacketBits::new(packet.clone(), 0, 1).after(AluOp::And, 15).unwrap();
        assert_eq!(positions(&ihl), [4, 5, 6, 7]);
        // `(byte << 2) & 0x3c`
        let words = PacketBits::new(packet.clone(), 0, 1)
            .after(AluOp::Lsh, 2)
            .unwrap()
            .after(AluOp::And, 0x3c)
            .unwrap();
        assert_eq!(positions(&words), [4, 5, 6, 7]);
        let version = PacketBits::new(packet.clone(), 0, 1).after(AluOp::Rsh, 4).unwrap();
        assert_eq!(positions(&version), [0, 1, 2, 3]);
        // `ntohs(word) & 0x0fff`
        let low = PacketBits::new(packet, 1, 2).reversed(2).unwrap().after(AluOp::And, 0x0fff).unwrap();
        assert_eq!(positions(&low), (12..24).collect::<Vec<_>>());
    }
}
