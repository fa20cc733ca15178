//! Liveness of the stack, and elimination of dead stores, such as those of keys for look-ups that are inlined.

use paceline_isa::{Callee, Insn};

use crate::inline::Inline;
use crate::links::Links;
use crate::liveness::Live;
use crate::source::Source;

/// Size in bytes of a cell, the granularity of stack liveness.
const CELL: i32 = 4;
/// Stack size in bytes (`MAX_BPF_STACK`).
const STACK: i32 = 512;

/// A set of cells: bit 0 is the one with the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells(u128);

impl Live for Cells {
    const ALL: Self = Self(u128::MAX);

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Cells {
    /// The cells `from..to`.
    fn range(from: i32, to: i32) -> Self {
        let below = |n: i32| match n.clamp(0, STACK / CELL) {
            128 => u128::MAX,
            n => (1 << n) - 1,
        };
        Self(below(to) & !below(from))
    }

    /// Cells that overlap the bytes `start..end`, offsets from the frame pointer.
    pub(crate) fn touched(start: i32, end: i32) -> Self {
        let cell = |byte: i32| (byte + STACK).div_euclid(CELL);
        Self::range(cell(start), cell(end + CELL - 1))
    }

    /// Cells that lie within the bytes `start..end`.
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

    /// Cells of eight-byte words, numbered as in `FunctionFact::shared`.
    fn of_words(words: u64) -> Self {
        let word = |i: i32| Self::touched(-8 * (i + 1), -8 * i);
        (0..64).filter(|i| words >> i & 1 != 0).fold(Self::default(), |all, i| all.union(word(i)))
    }
}

/// Analysis of reads of the stack.
pub(crate) struct StackReads<'a> {
    source: &'a Source<'a>,
    links: &'a Links,
    /// For each function the end slot, and the cells that other functions may read.
    shared: Vec<(usize, Cells)>,
}

impl<'a> StackReads<'a> {
    /// `None` if facts are missing, or if no array look-up is inlined: compilers leave no dead stores of their own, so the analysis
    /// would not pay.
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

    /// Transfer function: live cells before an instruction, from those after it.
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

/// Whether a call is an inlined array look-up, with its index if that is known.
fn array_look_up(source: &Source<'_>, links: &Links, slot: usize, insn: &Insn) -> Option<Option<u32>> {
    let Insn::Call(Callee::Helper(id)) = *insn else { return None };
    match Inline::of(source, links, slot, id)? {
        Inline::Array(_, key) => Some(key),
        _ => None,
    }
}

/// The bytes `start..end` of its own stack that an instruction stores to, as offsets from the frame pointer, if they are constant.
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
