//! The stack of one frame, byte by byte.

use super::origin::Origin;
use super::value::{Dynptr, NumIterator, Value};

/// Maximum stack size of a frame, and of all frames of a call chain, in bytes (`MAX_BPF_STACK`).
pub const MAX_STACK: u32 = 512;

/// Contents of a stack byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Byte {
    /// Never written.
    Unset,
    /// Part of a spilled register.
    Spilled,
    /// Any value.
    Data,
    /// Zero.
    Zero,
    /// Part of an iterator.
    Iterator,
    /// Part of a dynptr.
    Dynptr,
}

/// Eight aligned bytes of the stack.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Contents of each byte, by rising address.
    pub bytes: [Byte; 8],
    /// The value whose low bytes are the spilled ones; unset if there are none.
    pub value: Value,
    /// Its origin at the last checkpoint.
    pub origin: Origin,
    /// Bytes written since, as bits.
    pub fresh: u8,
}

impl Slot {
    /// A slot that was never written.
    pub const EMPTY: Self =
        Self { bytes: [Byte::Unset; 8], value: Value::Unset, origin: Origin::NONE, fresh: 0xff };

    /// Number of low bytes of a value that are spilled here, from the first byte on; 0 if none.
    #[must_use]
    pub fn spilled_bytes(&self) -> usize {
        self.bytes.iter().take_while(|&&b| b == Byte::Spilled).count()
    }

    /// Whether `size` bytes from `first` on are the low bytes of the spilled value: the first bytes on little-endian
    /// machines, the last ones on big-endian machines (`bpf_stack_narrow_access_ok`).
    #[must_use]
    pub fn holds_low_bytes(&self, first: usize, size: usize) -> bool {
        let spilled = self.spilled_bytes();
        let start = if cfg!(target_endian = "little") { Some(0) } else { spilled.checked_sub(size) };
        size <= spilled && start == Some(first)
    }

    /// Bytes that are known to be zero, as bits.
    #[must_use]
    pub fn zeros(&self) -> u8 {
        let is_zero = |byte: &Byte| match byte {
            Byte::Zero => true,
            Byte::Spilled => self.value.is_null(),
            Byte::Unset | Byte::Data | Byte::Iterator | Byte::Dynptr => false,
        };
        self.bytes.iter().enumerate().fold(0, |all, (i, byte)| all | u8::from(is_zero(byte)) << i)
    }

    /// Bytes that are zero here and part of a spilled value in another slot, as bits: this slot covers the other only if
    /// that value is zero.
    #[must_use]
    pub fn zeros_of_value(&self, other: &Self) -> u8 {
        let pairs = self.bytes.iter().zip(&other.bytes).enumerate();
        pairs.fold(0, |all, (i, pair)| all | u8::from(pair == (&Byte::Zero, &Byte::Spilled)) << i)
    }

    /// Bytes that were never written, as bits.
    #[must_use]
    pub fn unset(&self) -> u8 {
        let bytes = self.bytes.iter().enumerate();
        bytes.fold(0, |all, (i, &byte)| all | u8::from(byte == Byte::Unset) << i)
    }

    /// Overwrites bytes, given as bits, with `byte`. All other bytes of a slot with a spilled value become plain data,
    /// zeros too (`check_stack_write_fixed_off`): so a loop that stores data there converges one round earlier.
    pub fn overwrite(&mut self, bytes: u8, byte: Byte) {
        let had_value = self.spilled_bytes() != 0;
        self.forget_value();
        for (i, b) in self.bytes.iter_mut().enumerate() {
            if had_value && *b == Byte::Zero {
                *b = Byte::Data;
            }
            if bytes >> i & 1 != 0 {
                *b = byte;
            }
        }
        self.written(bytes);
    }

    /// Spills the low `size` bytes of a value.
    pub fn spill(&mut self, value: Value, size: usize) {
        self.forget_value();
        self.value = value;
        for b in self.bytes.iter_mut().take(size) {
            *b = Byte::Spilled;
        }
        self.written(if size >= 8 { u8::MAX } else { (1 << size) - 1 });
    }

    /// Puts an iterator here.
    pub fn place(&mut self, iterator: NumIterator) {
        (self.value, self.bytes) = (Value::Iterator(iterator), [Byte::Iterator; 8]);
        self.written(u8::MAX);
    }

    /// The iterator that is here.
    #[must_use]
    pub fn iterator(&self) -> Option<NumIterator> {
        match self.value {
            Value::Iterator(iterator) => Some(iterator),
            _ => None,
        }
    }

    /// Puts half of a dynptr here.
    pub fn place_dynptr(&mut self, dynptr: Dynptr) {
        (self.value, self.bytes) = (Value::Dynptr(dynptr), [Byte::Dynptr; 8]);
        self.written(u8::MAX);
    }

    /// The dynptr of which half is here.
    #[must_use]
    pub fn dynptr(&self) -> Option<Dynptr> {
        match self.value {
            Value::Dynptr(dynptr) => Some(dynptr),
            _ => None,
        }
    }

    fn forget_value(&mut self) {
        self.value = Value::Unset;
        for b in &mut self.bytes {
            if matches!(b, Byte::Spilled | Byte::Iterator | Byte::Dynptr) {
                *b = Byte::Data;
            }
        }
    }

    fn written(&mut self, bytes: u8) {
        self.fresh |= bytes;
        if self.fresh == u8::MAX {
            self.origin = Origin::NONE;
        }
    }
}

/// The stack of one frame, down to the lowest slot in use.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Slots from the top: the first covers the bytes -8 to -1 from the frame pointer.
    slots: Vec<Slot>,
}

impl Stack {
    /// The slot of the byte at `offset` from the frame pointer, -512 to -1, and the byte's number in it.
    #[must_use]
    pub fn place(offset: i64) -> (usize, usize) {
        let below = (-1 - offset) as usize;
        (below / 8, 7 - below % 8)
    }

    /// The offset of a slot's first byte from the frame pointer.
    #[must_use]
    pub fn offset(index: usize) -> i64 {
        -8 * (index as i64 + 1)
    }

    /// A slot; an empty one below the lowest slot in use.
    #[must_use]
    pub fn slot(&self, index: usize) -> Slot {
        self.slots.get(index).copied().unwrap_or(Slot::EMPTY)
    }

    /// A slot to write to.
    pub fn slot_mut(&mut self, index: usize) -> &mut Slot {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::EMPTY);
        }
        // In bounds: just resized.
        &mut self.slots[index]
    }

    /// The slots in use.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slots in use.
    pub fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }
}

/// The slots that the bytes `offset..offset + size` overlap, each with its bytes as bits.
pub(crate) fn parts(offset: i64, size: u64) -> impl Iterator<Item = (usize, u8)> {
    let end = offset + size as i64;
    let first = offset.div_euclid(8) * 8;
    (0..).map(move |i| first + i * 8).take_while(move |&start| start < end).map(move |start| {
        let from = (offset - start).clamp(0, 8) as u32;
        let to = (end - start).clamp(0, 8) as u32;
        let bits = (u16::MAX >> (16 - to)) & !((1u16 << from) - 1);
        (Stack::place(start).0, bits as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_down_from_the_frame_pointer() {
        assert_eq!(Stack::place(-1), (0, 7));
        assert_eq!(Stack::place(-8), (0, 0));
        assert_eq!(Stack::place(-9), (1, 7));
        assert_eq!(Stack::place(-512), (63, 0));
        assert_eq!((Stack::offset(0), Stack::offset(63)), (-8, -512));
    }

    #[test]
    fn an_access_is_cut_at_slots() {
        assert_eq!(parts(-8, 8).collect::<Vec<_>>(), [(0, 0xff)]);
        assert_eq!(parts(-12, 8).collect::<Vec<_>>(), [(1, 0xf0), (0, 0x0f)]);
        assert_eq!(parts(-16, 3).collect::<Vec<_>>(), [(1, 0x07)]);
        assert_eq!(parts(-1, 1).collect::<Vec<_>>(), [(0, 0x80)]);
        assert_eq!(parts(-8, 0).collect::<Vec<_>>(), []);
    }
}
