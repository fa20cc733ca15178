//! Bytes of a region.

use std::collections::BTreeMap;

use crate::solver::Term;

use crate::symbolic::value::Value;

/// A byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Byte {
    /// A number of 8 bits.
    Number(Term),
    /// A byte of a value that is no number, by its place in memory.
    Part(Value, u8),
}

/// The bytes of a region that were written, by offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    written: BTreeMap<i64, Byte>,
}

impl Memory {
    pub(crate) fn get(&self, offset: i64) -> Option<Byte> {
        self.written.get(&offset).copied()
    }

    pub(crate) fn set(&mut self, offset: i64, byte: Byte) {
        self.written.insert(offset, byte);
    }

    /// Forgets the bytes at some offsets.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(i64) -> bool) {
        self.written.retain(|offset, _| keep(*offset));
    }

    /// The offsets that were written.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = i64> + '_ {
        self.written.keys().copied()
    }

    /// Replaces all numbers.
    pub(crate) fn map_numbers(&mut self, mut by: impl FnMut(i64, Term) -> Term) {
        for (offset, byte) in &mut self.written {
            if let Byte::Number(number) = byte {
                *number = by(*offset, *number);
            }
        }
    }
}
