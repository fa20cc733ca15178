//! Memory accesses: a pointer, and the bytes from it that an instruction or a helper reads or writes.

use std::fmt;

use paceline_isa::{Reg, Size};

use super::number::Tnum;
use super::state::{Buffer, NumIterator, Pointer, Slot, State, Target};

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A range of memory that an instruction or a helper accesses.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// The register that holds the address.
    pub(crate) register: Reg,
    /// Its pointer.
    pub(crate) pointer: Pointer,
    /// Added to the pointer, in bytes.
    pub(crate) offset: i64,
    /// Bytes.
    pub(crate) size: u64,
    pub(crate) access: Access,
}

impl Span {
    /// The known part of the offset.
    pub(crate) fn fixed(&self) -> i64 {
        i64::from(self.pointer.fixed) + self.offset
    }

    /// Possible offsets of the first byte.
    pub(crate) fn offsets(&self) -> OffsetRange {
        let variable = &self.pointer.variable;
        OffsetRange {
            min: self.fixed().saturating_add(variable.smin()),
            max: self.fixed().saturating_add(variable.smax()),
        }
    }

    /// Whether it is aligned to its size at every possible offset, relative to the base.
    pub(crate) fn is_aligned(&self) -> bool {
        self.is_multiple_of(self.size.max(1))
    }

    /// The same for any power of two.
    pub(crate) fn is_multiple_of(&self, size: u64) -> bool {
        let place = self.pointer.variable.bits().add(Tnum::constant(self.fixed() as u64));
        size == 1 || place.truncate(size.trailing_zeros()).max() == 0
    }

    /// The bytes that may be accessed: the first, and the one past the last.
    pub(crate) fn reach(&self) -> (i64, i64) {
        let OffsetRange { min, max } = self.offsets();
        (min, max.saturating_add_unsigned(self.size))
    }

    /// The bytes that may be accessed: the first offset, and how many.
    pub(crate) fn extent(&self) -> (i64, u64) {
        let OffsetRange { min, max } = self.offsets();
        (min, (max - min).unsigned_abs() + self.size)
    }

    /// The buffer that this memory is for a slice, if its end must invalidate the slice.
    pub(crate) fn as_buffer(&self) -> Option<Buffer> {
        match self.pointer.target {
            Target::Stack { frame } => {
                // No overflow: the place was checked to be within the stack.
                let (start, end) = self.reach();
                Some(Buffer::Stack { frame, start: start as i16, end: end as i16 })
            }
            // A slice with such a buffer may be in the packet as well: it ends when any record does.
            Target::Slice { buffer: Some(Buffer::Dynptr { .. }), .. } => Some(Buffer::Record),
            Target::Slice { buffer, .. } => buffer,
            Target::Record { .. } => Some(Buffer::Record),
            _ => None,
        }
    }
}

/// Place of an iterator: frame number, and slot in its stack.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) frame: usize,
    pub(crate) slot: usize,
}

impl Place {
    pub(crate) fn of(self, state: &State) -> Option<NumIterator> {
        state.frame(self.frame).and_then(|frame| frame.stack.slot(self.slot).iterator())
    }

    pub(crate) fn slot_mut(self, state: &mut State) -> Option<&mut Slot> {
        state.frame_mut(self.frame).map(|frame| frame.stack.slot_mut(self.slot))
    }

    pub(crate) fn put(self, state: &mut State, iterator: NumIterator) {
        if let Some(slot) = self.slot_mut(state) {
            slot.place(iterator);
        }
    }
}

/// Bits that an access of a size moves.
pub(crate) const fn bits(size: Size) -> u32 {
    size.bytes() as u32 * 8
}

/// Least and greatest offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// Least.
    pub min: i64,
    /// Greatest.
    pub max: i64,
}

impl fmt::Display for OffsetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{}..={}", self.min, self.max)
        }
    }
}
