//! Code on its way into an arena: bytes, what must be patched in them, and what they are called.

use std::sync::Arc;

use crate::extents::GRAIN;

/// A displacement to be filled in once the address of the code is known: four bytes in the machine's byte order,
/// which count from their own end to the target, as `call` and `jmp` of x86-64 and its operands relative to `rip` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where the displacement lies, in bytes from the start of the code.
    pub offset: usize,
    /// The address it leads to.
    pub target: usize,
}

/// Code to install: [`Arena::install`](crate::Arena::install) copies it.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) relocations: &'a [Relocation],
    pub(crate) alignment: usize,
    /// Shared with the code installed from this.
    pub(crate) functions: Arc<[Function]>,
}

impl<'a> Code<'a> {
    /// Code without relocations and names, to be aligned to a cache line.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, relocations: &[], alignment: GRAIN, functions: [].into() }
    }

    /// With displacements to patch.
    #[must_use]
    pub fn relocations(mut self, relocations: &'a [Relocation]) -> Self {
        self.relocations = relocations;
        self
    }

    /// At a multiple of `bytes`, a power of two up to [`MAX_ALIGNMENT`](crate::MAX_ALIGNMENT). 64 is the least that
    /// code gets.
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// What the code is made of: for `perf`, for debuggers, and for [`find`](crate::find).
    #[must_use]
    pub fn functions(mut self, functions: Vec<Function>) -> Self {
        self.functions = functions.into();
        self
    }
}

/// A stretch of native code with a name of its own: a program, a subprogram, a dispatcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// What `perf` and `gdb` show.
    pub name: String,
    /// First byte, from the start of the code.
    pub start: u32,
    /// Bytes.
    pub len: u32,
    /// Which instruction the native code was made from.
    pub map: CodeMap,
    /// Source lines, by ascending slot; each holds until the next begins. May be empty.
    pub lines: Arc<[SourceLine]>,
}

impl Function {
    /// The source line that a slot was compiled from.
    #[must_use]
    pub fn line(&self, slot: u32) -> Option<&SourceLine> {
        let after = self.lines.partition_point(|line| line.slot <= slot);
        self.lines.get(after.checked_sub(1)?)
    }

    /// Where source lines begin in the native code: offsets from the start of the installed code, ascending, and each
    /// line other than the one before.
    pub(crate) fn rows(&self) -> Vec<(u32, &SourceLine)> {
        let own = self.start..self.start.saturating_add(self.len);
        let entries = self.map.entries().iter().filter(|(offset, _)| own.contains(offset));
        let mut rows: Vec<_> =
            entries.filter_map(|&(offset, slot)| Some((offset, self.line(slot)?))).collect();
        rows.dedup_by(|(_, next), (_, line)| (&next.file, next.line) == (&line.file, line.line));
        rows
    }
}

/// Where a source line begins, as BTF's line information has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// First slot.
    pub slot: u32,
    /// Name of the source file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

/// From native code back to instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeMap {
    /// Offsets from the start of the code, ascending, each with the slot that the code from there on belongs to.
    entries: Vec<(u32, u32)>,
}

impl CodeMap {
    /// From pairs of native offset (from the start of the installed code) and slot, in any order. Of two slots with
    /// the same offset the first made no code, and the last is kept.
    #[must_use]
    pub fn new(mut entries: Vec<(u32, u32)>) -> Self {
        entries.sort_by_key(|&(offset, _)| offset);
        entries.reverse();
        entries.dedup_by_key(|&mut (offset, _)| offset);
        entries.reverse();
        Self { entries }
    }

    /// The slot that the native code at an offset was made from; `None` before the first.
    #[must_use]
    pub fn slot(&self, offset: u32) -> Option<u32> {
        let after = self.entries.partition_point(|&(start, _)| start <= offset);
        self.entries.get(after.checked_sub(1)?).map(|&(_, slot)| slot)
    }

    /// All pairs, by ascending offset.
    #[must_use]
    pub fn entries(&self) -> &[(u32, u32)] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_by_offset() {
        let map = CodeMap::new(vec![(12, 3), (4, 0), (8, 1), (8, 2)]);
        assert_eq!(map.entries(), [(4, 0), (8, 2), (12, 3)], "slot 1 made no code");
        let slots: Vec<_> = [3, 4, 7, 8, 11, 12, 1000].map(|offset| map.slot(offset)).to_vec();
        assert_eq!(slots, [None, Some(0), Some(0), Some(2), Some(2), Some(3), Some(3)]);
    }

    #[test]
    fn lines_by_slot() {
        let file: Arc<str> = "a.c".into();
        let line = |slot, line| SourceLine { slot, file: Arc::clone(&file), line };
        let function = Function { lines: [line(1, 10), line(4, 12)].into(), ..Function::default() };
        let lines: Vec<_> = (0..6).map(|slot| function.line(slot).map(|line| line.line)).collect();
        assert_eq!(lines, [None, Some(10), Some(10), Some(10), Some(12), Some(12)]);
    }
}
