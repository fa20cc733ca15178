//! Counts by source files, lines, functions and branches.

use std::collections::{BTreeMap, BTreeSet};

use paceline_spec::ProgramSpec;

use crate::counts::Counts;

/// Counts of a line of source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineReport {
    /// Times that control came to the line.
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
        let places = places(counts);
        self.add_lines(counts, &places);
        self.add_branches(counts, &places);
        let spec = &counts.program;
        for function in &spec.functions {
            let Some((file, line)) = place(spec, function.start) else { continue };
            let count = counts.insns.get(function.start).copied().unwrap_or(0);
            let functions = &mut self.files.entry(file.to_owned()).or_default().functions;
            let entry = functions.entry(function.name.clone()).or_insert(FunctionReport { line, count: 0 });
            entry.count += count;
        }
    }

    /// A line is entered as often as its blocks are from others: control that stays in the line does not enter it again.
    fn add_lines(&mut self, counts: &Counts, places: &[Place<'_>]) {
        let spec = &counts.program;
        let lines: Vec<BTreeSet<(&str, u32)>> = counts
            .blocks
            .iter()
            .map(|block| {
                places.get(block.start..block.end).unwrap_or_default().iter().flatten().copied().collect()
            })
            .collect();
        for (block, of_block) in counts.blocks.iter().zip(&lines) {
            for line in of_block {
                let stays = |from: usize| lines.get(from).is_some_and(|lines| lines.contains(line));
                let inside: u64 =
                    block.from.iter().filter(|(from, _)| stays(*from)).map(|(_, times)| times).sum();
                self.line(line.0, line.1, spec).count += block.count.saturating_sub(inside);
            }
        }
    }

    fn add_branches(&mut self, counts: &Counts, places: &[Place<'_>]) {
        // Branches of a line are numbered in the order of the instructions, for each program from the first on.
        let mut numbers: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        for branch in &counts.branches {
            let Some((file, line)) = places.get(branch.slot).copied().flatten() else { continue };
            let number = numbers.entry((file, line)).or_default();
            let branches = &mut self.line(file, line, &counts.program).branches;
            if branches.len() <= *number {
                branches.resize(*number + 1, BranchLine::default());
            }
            if let Some(known) = branches.get_mut(*number) {
                known.taken += branch.taken;
                known.not_taken += branch.not_taken;
            }
            *number += 1;
        }
    }

    fn line(&mut self, file: &str, number: u32, spec: &ProgramSpec) -> &mut LineReport {
        let line = self.files.entry(file.to_owned()).or_default().lines.entry(number).or_default();
        if line.text.is_empty() {
            let found = spec.lines.iter().find(|info| info.line == number && *info.file == *file);
            line.text = found.map_or_else(String::new, |info| info.text.to_string());
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

/// File and line of an instruction.
type Place<'a> = Option<(&'a str, u32)>;

/// The places of all slots. An entry of the line information holds until the next one; instructions that the compiler made without a
/// line have none of their own, and at the start of a block that others lead to they belong to no line.
fn places(counts: &Counts) -> Vec<Place<'_>> {
    let spec = &counts.program;
    let mut places: Vec<_> = (0..counts.insns.len()).map(|slot| place(spec, slot)).collect();
    for block in &counts.blocks {
        let next = spec.lines.partition_point(|line| line.slot < block.start);
        let next = spec.lines.get(next).map_or(block.end, |line| line.slot);
        let inherited = place(spec, block.start);
        let comes_from = |(from, _): &(usize, u64)| {
            counts.blocks.get(*from).and_then(|from| place(spec, from.end.saturating_sub(1)))
        };
        if next > block.start && block.from.iter().any(|from| comes_from(from) != inherited) {
            let unknown = block.start..next.min(block.end);
            places.get_mut(unknown).into_iter().flatten().for_each(|place| *place = None);
        }
    }
    places
}

/// File and line of a slot; compilers use line 0 for code without a line.
fn place(spec: &ProgramSpec, slot: usize) -> Option<(&str, u32)> {
    spec.line_of(slot).filter(|line| line.line > 0).map(|line| (&*line.file, line.line))
}
