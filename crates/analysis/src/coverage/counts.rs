//! Counts of instructions and branches, from the counters.

use paceline_isa::{Code, Insn};
use paceline_spec::ProgramSpec;

use crate::coverage::instrument::Plan;

/// How often a conditional jump went each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCount {
    /// Slot of the jump.
    pub slot: usize,
    /// Times that it jumped.
    pub taken: u64,
    /// Times that it did not.
    pub not_taken: u64,
}

/// How often the instructions of a program ran.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The program.
    pub program: ProgramSpec,
    /// By slot.
    pub insns: Vec<u64>,
    /// The conditional jumps, by rising slots.
    pub branches: Vec<BranchCount>,
    /// The instructions.
    pub(crate) code: Code,
    /// Slots of each block, with the blocks that lead to it and how often.
    pub(crate) blocks: Vec<BlockCount>,
}

#[derive(Clone, Debug)]
pub(crate) struct BlockCount {
    pub(crate) start: usize,
    /// Slot of its last instruction.
    pub(crate) last: usize,
    pub(crate) end: usize,
    /// Blocks that follow if a jump at its end is taken, and if not.
    pub(crate) target: Option<usize>,
    pub(crate) next: Option<usize>,
    pub(crate) count: u64,
    /// Blocks from which it was entered, with how often.
    pub(crate) from: Vec<(usize, u64)>,
}

impl Plan {
    /// The counts, from the bytes of the counters in native order; missing ones are zero.
    #[must_use]
    pub fn counts(&self, counters: &[u8]) -> Counts {
        let counter = |index: usize| {
            let bytes = counters.get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        };
        let mut insns = vec![0; self.code.len()];
        let mut branches = Vec::new();
        let mut blocks: Vec<_> = self
            .blocks
            .iter()
            .enumerate()
            .map(|(index, block)| BlockCount {
                start: block.start,
                last: block.last,
                end: block.end,
                target: block.target,
                next: block.next,
                count: counter(index),
                from: Vec::new(),
            })
            .collect();
        for (index, block) in self.blocks.iter().enumerate() {
            let count = counter(index);
            insns.get_mut(block.start..block.end).into_iter().flatten().for_each(|insn| *insn = count);
            let on = match (block.next, self.edges.get(index).copied().flatten()) {
                (None, _) => 0,
                (Some(_), Some(edge)) => counter(edge),
                (Some(next), None) if block.branches(&self.code) => counter(next),
                (Some(_), None) => count,
            };
            let jumped = if block.target.is_some() { count.saturating_sub(on) } else { 0 };
            if matches!(self.code.get(block.last), Some(Insn::JumpIf { .. })) {
                branches.push(BranchCount { slot: block.last, taken: jumped, not_taken: on });
            }
            for (to, times) in [(block.target, jumped), (block.next, on)] {
                if let Some(to) = to.and_then(|to| blocks.get_mut(to)) {
                    to.from.push((index, times));
                }
            }
        }
        Counts { program: self.spec.clone(), code: self.code.clone(), insns, branches, blocks }
    }
}

impl Counts {
    /// Calls of the function that starts at a slot.
    pub(crate) fn calls(&self, start: usize) -> u64 {
        let Some(block) = self.blocks.iter().find(|block| block.start == start) else { return 0 };
        // A loop may lead back to the first instruction.
        block.count.saturating_sub(block.from.iter().map(|(_, times)| times).sum())
    }

    /// Adds the counts of another run of the same program.
    pub fn add(&mut self, other: &Self) {
        self.insns.iter_mut().zip(&other.insns).for_each(|(a, b)| *a += b);
        for (a, b) in self.branches.iter_mut().zip(&other.branches) {
            a.taken += b.taken;
            a.not_taken += b.not_taken;
        }
        for (a, b) in self.blocks.iter_mut().zip(&other.blocks) {
            a.count += b.count;
            a.from.iter_mut().zip(&b.from).for_each(|(a, b)| a.1 += b.1);
        }
    }
}
