//! Counts by source files, lines, functions and branches.

use std::collections::BTreeMap;

use paceline_spec::LineInfo;

use crate::coverage::counts::Counts;
use crate::coverage::lines::{entries, line_counts, place};
use crate::coverage::sides::destinations;

/// Counts of a line of source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineReport {
    /// Times that the part of the line ran that ran most often.
    pub count: u64,
    /// Text, as the object has it.
    pub text: String,
    /// Branches in the order of the instructions.
    pub branches: Vec<BranchLine>,
}

/// A conditional jump of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchLine {
    /// Times that it jumped.
    pub taken: u64,
    /// Times that it did not.
    pub not_taken: u64,
    /// Lines of the same file that the jump and the way on lead to, where they differ.
    pub lines: Option<[u32; 2]>,
}

/// Counts of a function that has code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionReport {
    /// First line that it has code of.
    pub line: u32,
    /// Calls.
    pub count: u64,
}

/// Counts of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// By number, from 1.
    pub lines: BTreeMap<u32, LineReport>,
    /// By name.
    pub functions: BTreeMap<String, FunctionReport>,
}

/// Counts of all files; programs and runs are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By name, as the compiler saw it.
    pub files: BTreeMap<String, FileReport>,
}

/// Numbers of covered lines, functions and branch sides, each with the number of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines that ran, of those with code.
    pub lines: (usize, usize),
    /// Functions that were called, of those with code of their own.
    pub functions: (usize, usize),
    /// Sides of branches that were taken, of both sides of each.
    pub branches: (usize, usize),
}

impl Report {
    /// The report of some programs. Copies of a line in several functions, where the compiler inlined it, count together; a function
    /// that two programs have counts for both.
    #[must_use]
    pub fn new<'a>(counts: impl IntoIterator<Item = &'a Counts>) -> Self {
        let mut report = Self::default();
        counts.into_iter().for_each(|counts| report.add(counts));
        report
    }

    fn add(&mut self, counts: &Counts) {
        let entries = entries(counts);
        let ran = line_counts(counts, &entries);
        for entry in entries.iter().copied().flatten() {
            self.line(entry);
        }
        for ((file, number), count) in ran {
            let line = self.files.get_mut(file).and_then(|file| file.lines.get_mut(&number));
            line.into_iter().for_each(|line| line.count += count);
        }
        self.add_branches(counts, &entries);
        let spec = &counts.program;
        for function in &spec.functions {
            let first = spec.line_of(function.start).filter(|line| line.line > 0);
            let Some(LineInfo { file, line, .. }) = first else { continue };
            let count = counts.calls(function.start);
            let functions = &mut self.files.entry(file.to_string()).or_default().functions;
            let entry =
                functions.entry(function.name.clone()).or_insert(FunctionReport { line: *line, count: 0 });
            entry.count += count;
        }
    }

    fn add_branches(&mut self, counts: &Counts, entries: &[Option<&LineInfo>]) {
        // Branches of a line are numbered in the order of the instructions, for each program from the first on.
        let mut numbers: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        for branch in &counts.branches {
            let Some(entry) = entries.get(branch.slot).copied().flatten() else { continue };
            let number = numbers.entry(place(entry)).or_default();
            let branches = &mut self.line(entry).branches;
            if branches.len() <= *number {
                branches.resize(*number + 1, BranchLine::default());
            }
            if let Some(known) = branches.get_mut(*number) {
                known.taken += branch.taken;
                known.not_taken += branch.not_taken;
                known.lines = known.lines.or_else(|| destinations(counts, entries, branch.slot));
            }
            *number += 1;
        }
    }

    fn line(&mut self, entry: &LineInfo) -> &mut LineReport {
        if !self.files.contains_key(&*entry.file) {
            self.files.insert(entry.file.to_string(), FileReport::default());
        }
        let line = self.files.entry(entry.file.to_string()).or_default().lines.entry(entry.line).or_default();
        if line.text.is_empty() {
            line.text = entry.text.to_string();
        }
        line
    }

    /// Totals of all files.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.files.values().map(FileReport::totals).fold(Totals::default(), |all, file| Totals {
            lines: sum(all.lines, file.lines),
            functions: sum(all.functions, file.functions),
            branches: sum(all.branches, file.branches),
        })
    }
}

impl FileReport {
    /// Totals of the file.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let lines = self.lines.values().filter(|line| line.count > 0).count();
        let functions = self.functions.values().filter(|function| function.count > 0).count();
        let branches: Vec<_> = self.lines.values().flat_map(|line| &line.branches).collect();
        let sides = |branch: &&BranchLine| usize::from(branch.taken > 0) + usize::from(branch.not_taken > 0);
        Totals {
            lines: (lines, self.lines.len()),
            functions: (functions, self.functions.len()),
            branches: (branches.iter().map(sides).sum(), 2 * branches.len()),
        }
    }
}

fn sum(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0 + b.0, a.1 + b.1)
}
