//! Code to be installed: bytes, relocations, and functions with their names.

use std::sync::Arc;

use crate::exec::extents::GRAIN;

/// Maximum alignment of code in bytes.
pub const MAX_ALIGNMENT: usize = 4096;

/// A PC-relative relocation: a 32-bit displacement in native byte order, relative to its own end, as in `call`, `jmp` and
/// `rip`-relative operands of x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the displacement from the start of the code in bytes.
    pub offset: usize,
    /// Target address.
    pub target: usize,
}

/// Code for [`Arena::install`](crate::exec::Arena::install), which copies it.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) relocations: &'a [Relocation],
    pub(crate) alignment: usize,
    /// Shared with the installed code.
    pub(crate) functions: Arc<[Function]>,
}

impl<'a> Code<'a> {
    /// Code without relocations and functions, aligned to a cache line.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, relocations: &[], alignment: GRAIN, functions: [].into() }
    }

    /// Sets the relocations.
    #[must_use]
    pub fn relocations(mut self, relocations: &'a [Relocation]) -> Self {
        self.relocations = relocations;
        self
    }

    /// Sets the alignment to `bytes`, a power of two up to [`MAX_ALIGNMENT`](crate::exec::MAX_ALIGNMENT). The minimum is 64.
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets the functions: for `perf`, debuggers, and [`find`](crate::exec::find).
    #[must_use]
    pub fn functions(mut self, functions: Vec<Function>) -> Self {
        self.functions = functions.into();
        self
    }
}

/// A named range of native code: a program, a subprogram, a dispatcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The name in `perf` and `gdb`.
    pub name: String,
    /// Offset of the first byte from the start of the code.
    pub start: u32,
    /// Size in bytes.
    pub len: u32,
    /// Map from native code to instructions.
    pub map: CodeMap,
    /// Source lines by increasing slot; each extends to the next one. May be empty.
    pub lines: Arc<[SourceLine]>,
}

impl Function {
    /// The source line of a slot.
    #[must_use]
    pub fn line(&self, slot: u32) -> Option<&SourceLine> {
        let after = self.lines.partition_point(|line| line.slot <= slot);
        self.lines.get(after.checked_sub(1)?)
    }

    /// Line table of the native code: increasing offsets from the start of the installed code, without consecutive entries of the
    /// same line.
    pub(crate) fn rows(&self) -> Vec<(u32, &SourceLine)> {
        let own = self.start..self.start.saturating_add(self.len);
        let entries = self.map.entries().iter().filter(|(offset, _)| own.contains(offset));
        let mut rows: Vec<_> =
            entries.filter_map(|&(offset, slot)| Some((offset, self.line(slot)?))).collect();
        rows.dedup_by(|(_, next), (_, line)| (&next.file, next.line) == (&line.file, line.line));
        rows
    }
}

/// Start of a source line, as in BTF's line information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// First slot.
    pub slot: u32,
    /// Name of the source file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

/// Map from native code to instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeMap {
    /// Increasing offsets from the start of the code, each with the slot of the code from there on.
    entries: Vec<(u32, u32)>,
}

impl CodeMap {
    /// Creates a map from pairs of native offset (from the start of the installed code) and slot, in any order. Of slots with the
    /// same offset only the last is kept, as the others have no code.
    #[must_use]
    pub fn new(mut entries: Vec<(u32, u32)>) -> Self {
        entries.sort_by_key(|&(offset, _)| offset);
        entries.reverse();
        entries.dedup_by_key(|&mut (offset, _)| offset);
        entries.reverse();
        Self { entries }
    }

    /// The slot of the native code at an offset; `None` before the first entry.
    #[must_use]
    pub fn slot(&self, offset: u32) -> Option<u32> {
        let after = self.entries.partition_point(|&(start, _)| start <= offset);
        self.entries.get(after.checked_sub(1)?).map(|&(_, slot)| slot)
    }

    /// All pairs, by increasing offset.
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
