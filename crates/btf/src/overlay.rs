//! The bytes of a structure whose members are being encoded, which may overlap.

use crate::types::ByteOrder;

/// Reasons why a member cannot be written.
pub(crate) enum Clash<'v> {
    /// It is out of the structure's bounds.
    Outside,
    /// It differs from this member in shared bits.
    With(&'v str),
}

/// The bytes of a structure, a mask of the bits that were written, and the members that wrote them. Members of unions share bits,
/// and may be given together if they agree.
pub(crate) struct Overlay<'b, 'v> {
    bytes: &'b mut [u8],
    written: Vec<u8>,
    /// Name, first bit, end bit.
    members: Vec<(&'v str, u32, u32)>,
}

impl<'b, 'v> Overlay<'b, 'v> {
    pub(crate) fn new(bytes: &'b mut [u8]) -> Self {
        let written = vec![0; bytes.len()];
        Self { bytes, written, members: Vec::new() }
    }

    /// Whether a member with this name was written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(written, ..)| *written == name)
    }

    /// Writes the low `count` bits of a number at a bit offset; the inverse of `bits_at` of `value/decode.rs`.
    pub(crate) fn put_bits(
        &mut self,
        name: &'v str,
        offset: u32,
        count: u32,
        number: u128,
    ) -> Result<(), Clash<'v>> {
        if count > 64 {
            return Err(Clash::Outside);
        }
        for i in 0..count {
            let at = offset.checked_add(i).ok_or(Clash::Outside)?;
            let (bit, shift) = match ByteOrder::NATIVE {
                ByteOrder::Little => (number >> i & 1, at % 8),
                ByteOrder::Big => (number >> (count - 1 - i) & 1, 7 - at % 8),
            };
            let new = u8::from(bit != 0) << shift;
            if self.put(at as usize / 8, new, 1 << shift)? {
                return Err(self.clash(offset, offset.saturating_add(count)));
            }
        }
        self.members.push((name, offset, offset.saturating_add(count)));
        Ok(())
    }

    /// Writes whole bytes at a bit offset.
    pub(crate) fn put_bytes(&mut self, name: &'v str, offset: u32, part: &[u8]) -> Result<(), Clash<'v>> {
        let bits = u32::try_from(part.len()).unwrap_or(u32::MAX).saturating_mul(8);
        let end = offset.saturating_add(bits);
        for (at, new) in (offset as usize / 8..).zip(part) {
            if self.put(at, *new, 0xff)? {
                return Err(self.clash(offset, end));
            }
        }
        self.members.push((name, offset, end));
        Ok(())
    }

    /// Writes the bits of `mask` in one byte; returns true if different bits were written there before.
    fn put(&mut self, at: usize, new: u8, mask: u8) -> Result<bool, Clash<'v>> {
        let (Some(byte), Some(written)) = (self.bytes.get_mut(at), self.written.get_mut(at)) else {
            return Err(Clash::Outside);
        };
        let differs = (*byte ^ new) & mask & *written != 0;
        *byte = *byte & !mask | new & mask;
        *written |= mask;
        Ok(differs)
    }

    /// A member that wrote any of these bits.
    fn clash(&self, start: u32, end: u32) -> Clash<'v> {
        let overlaps = |(_, s, e): &&(&str, u32, u32)| *s < end && start < *e;
        Clash::With(self.members.iter().find(overlaps).map_or("", |(first, ..)| first))
    }
}
