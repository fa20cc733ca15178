//! The stack of a function: which of it is still read. Stores that nobody reads have no code, such as those of keys for
//! look-ups that are made in place.

use paceline_isa::{Callee, Insn};

use crate::inline::Inline;
use crate::links::Links;
use crate::liveness::Live;
use crate::source::Source;

/// Bytes of a cell, the unit in which it is known who reads the stack.
const CELL: i32 = 4;
/// Bytes of the stack (`MAX_BPF_STACK`).
const STACK: i32 = 512;

/// A set of cells: bit 0 is the lowest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells(u128);

impl Live for Cells {
    const ALL: Self = Self(u128::MAX);

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Cells {
    /// Cells from one number on and below another.
    fn range(from: i32, to: i32) -> Self {
        let below = |n: i32| match n.clamp(0, STACK / CELL) {
            128 => u128::MAX,
            n => (1 << n) - 1,
        };
        Self(below(to) & !below(from))
    }

    /// Those that have one of the bytes `start..end` from the frame pointer.
    pub(crate) fn touched(start: i32, end: i32) -> Self {
        let cell = |byte: i32| (byte + STACK).div_euclid(CELL);
        Self::range(cell(start), cell(end + CELL - 1))
    }

    /// Those that have no others.
    fn covered(start: i32, end: i32) -> Self {
        let cell = |byte: i32| (byte + STACK).div_euclid(CELL);
        Self::range(cell(start + CELL - 1), cell(end))
    }

    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Eight-byte words, numbered as in `FunctionFact::shared`.
    fn of_words(words: u64) -> Self {
        let word = |i: i32| Self::touched(-8 * (i + 1), -8 * i);
        (0..64).filter(|i| words >> i & 1 != 0).fold(Self::default(), |all, i| all.union(word(i)))
    }
}

/// Who reads the stack.
pub(crate) struct StackReads<'a> {
    source: &'a Source<'a>,
    links: &'a Links,
    /// For each function the slot after its last, and what others read of its stack.
    shared: Vec<(usize, Cells)>,
}

impl<'a> StackReads<'a> {
    /// `None` if it is not known, or if no call is left out that might read the stack: compilers themselves leave no
    /// stores that nobody reads.
    pub(crate) fn of(source: &'a Source<'a>, links: &'a Links) -> Option<Self> {
        if !source.has_facts() {
            return None;
        }
        let calling = source.functions.iter().filter(|function| function.calls);
        let mut calls = calling.flat_map(|function| source.reached(function));
        calls.find(|&(slot, insn)| array_look_up(source, links, slot, insn).is_some())?;
        let shared = source.functions.iter().map(|f| (f.end, Cells::of_words(f.shared))).collect();
        Some(Self { source, links, shared })
    }

    /// What is live before an instruction, from what is after it.
    pub(crate) fn step(&self, slot: usize, insn: &Insn, after: Cells) -> Cells {
        let fact = self.source.fact(slot);
        let function = self.shared.partition_point(|&(end, _)| end <= slot);
        let shared = self.shared.get(function).map_or(Cells::default(), |&(_, shared)| shared);
        let written = stored(self.source, slot, insn)
            .map_or(Cells::default(), |(start, end)| Cells::covered(start, end));
        let reads_none = matches!(array_look_up(self.source, self.links, slot, insn), Some(Some(_)));
        let read = fact.stack_read.filter(|_| !reads_none);
        let read = read.map_or(Cells::default(), |read| Cells::touched(read.start.into(), read.end.into()));
        after.minus(written).union(read).union(shared)
    }
}

/// The look-up in an array that a call is in place, with its key if that is known.
fn array_look_up(source: &Source<'_>, links: &Links, slot: usize, insn: &Insn) -> Option<Option<u32>> {
    let Insn::Call(Callee::Helper(id)) = *insn else { return None };
    match Inline::of(source, links, slot, id)? {
        Inline::Array(_, key) => Some(key),
        _ => None,
    }
}

/// The bytes of its own stack that an instruction stores to, from the frame pointer, if they are always the same.
pub(crate) fn stored(source: &Source<'_>, slot: usize, insn: &Insn) -> Option<(i32, i32)> {
    let Insn::Store { size, .. } = *insn else { return None };
    let memory = source.fact(slot).memory?;
    let known = memory.base == paceline_verifier::Base::OwnStack && memory.min_offset == memory.max_offset;
    let start = i32::try_from(memory.min_offset).ok().filter(|_| known)?;
    Some((start, start + size.bytes() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cells() {
        assert_eq!(Cells::touched(-512, 0), Cells(u128::MAX));
        assert_eq!(Cells::touched(-4, 0), Cells(1 << 127));
        assert_eq!(Cells::touched(-5, -3), Cells(3 << 126));
        assert_eq!(Cells::covered(-5, -3), Cells(0));
        assert_eq!(Cells::covered(-5, 0), Cells(1 << 127));
        assert_eq!(Cells::touched(-512, -511), Cells(1));
        assert_eq!(Cells::touched(-4, -4), Cells(0));
        assert_eq!(Cells::of_words(1), Cells(3 << 126));
        assert_eq!(Cells::of_words(1 << 63), Cells(3));
    }
}
