//! The blocks in which a virtual register is live.

use std::ops::Range;

use super::point::{BEFORE, Point, point};
use crate::codegen::lir::Function;
use crate::codegen::reuse::{empty, filled};

/// In place of predecessors: none.
const NONE: u32 = u32::MAX;

/// Some of the predecessors of a block, among 64 blocks.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// The number of these 64 blocks.
    word: u32,
    /// Bits by block.
    blocks: u64,
    /// The next ones of the same block.
    next: u32,
}

/// The predecessors of blocks.
#[derive(Debug, Default)]
pub(super) struct Edges {
    all: Vec<Before>,
    /// By block: the first of its predecessors.
    first: Vec<u32>,
}

impl Edges {
    /// Finds the edges of a function.
    pub(super) fn find<O>(&mut self, function: &Function<O>) {
        filled(&mut self.first, NONE, function.blocks.len());
        empty(&mut self.all, function.targets.len());
        for (number, block) in (0..).zip(&function.blocks) {
            let (word, bit) = (number / 64, 1 << (number % 64));
            for target in function.targets_of(block) {
                let first = &mut self.first[target.block as usize];
                match self.all.get_mut(*first as usize) {
                    Some(before) if before.word == word => before.blocks |= bit,
                    _ => {
                        self.all.push(Before { word, blocks: bit, next: *first });
                        *first = self.all.len() as u32 - 1;
                    }
                }
            }
        }
    }

    /// The predecessors of a block: numbers of 64 blocks, with bits by block.
    #[inline]
    pub(super) fn to(&self, block: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut next = self.first[block as usize];
        std::iter::from_fn(move || {
            let before = self.all.get(next as usize)?;
            next = before.next;
            Some((before.word, before.blocks))
        })
    }
}

/// Whether a virtual register is live in 64 blocks: bits by block.
#[derive(Clone, Copy, Debug, Default)]
struct Alive {
    /// At the start of the block, unless it is a parameter of it; and in the block of the definition.
    start: u64,
    /// At its end.
    end: u64,
    /// Of those at the start, the blocks whose predecessors have not been looked at.
    work: u64,
}

/// Blocks in which a virtual register is found live.
#[derive(Default)]
pub(super) struct Live {
    /// By block: the point at which it begins; at the end, the end of the code.
    starts: Vec<Point>,
    /// By block: the last point at which the virtual register is used there, if it is not live at the block's end.
    until: Vec<Point>,
    /// By 64 blocks; none is alive between two virtual registers.
    alive: Vec<Alive>,
    /// The first and the last of these that have a block.
    words: [u32; 2],
    /// Those with work.
    work: Vec<u32>,
}

impl Live {
    /// Prepares for a function.
    pub(super) fn begin<O>(&mut self, function: &Function<O>) {
        let count = function.blocks.len();
        empty(&mut self.starts, count + 1);
        self.starts.extend(function.blocks.iter().map(|block| point(block.insts.start, BEFORE)));
        self.starts.push(point(function.insts.len() as u32, BEFORE));
        filled(&mut self.until, 0, count);
        filled(&mut self.alive, Alive::default(), count.div_ceil(64));
        empty(&mut self.work, count);
    }

    /// Prepares for a virtual register that is defined in a block.
    #[inline]
    pub(super) fn define(&mut self, defining: u32) {
        self.words = [defining / 64; 2];
        self.alive[defining as usize / 64].start = 1 << (defining % 64);
    }

    /// Notes that the virtual register is used in a block up to a point, and defined in another one.
    #[inline]
    pub(super) fn reach(&mut self, block: u32, until: Point) {
        self.until[block as usize] = until;
        self.enter(block / 64, 1 << (block % 64));
    }

    /// The virtual register is live at the starts of some of 64 blocks.
    #[inline]
    fn enter(&mut self, word: u32, blocks: u64) {
        let alive = &mut self.alive[word as usize];
        let new = blocks & !alive.start;
        if new != 0 {
            if alive.work == 0 {
                self.work.push(word);
                self.words = [self.words[0].min(word), self.words[1].max(word)];
            }
            alive.start |= new;
            alive.work |= new;
        }
    }

    /// Propagates liveness from the starts of blocks to the ends of their predecessors, up to the block of the definition.
    pub(super) fn spread(&mut self, edges: &Edges) {
        while let Some(word) = self.work.pop() {
            let mut alive = std::mem::take(&mut self.alive[word as usize]);
            while alive.work != 0 {
                let block = word * 64 + alive.work.trailing_zeros();
                alive.work &= alive.work - 1;
                for (other, blocks) in edges.to(block) {
                    if other == word {
                        alive.end |= blocks;
                        alive.work |= blocks & !alive.start;
                        alive.start |= blocks;
                    } else {
                        self.alive[other as usize].end |= blocks;
                        self.enter(other, blocks);
                    }
                }
            }
            self.alive[word as usize] = alive;
        }
    }

    /// Adds the segments of the virtual register, which is defined at a point of a block and used there up to another one, and forgets
    /// it. Returns whether it is live before its definition.
    pub(super) fn take(
        &mut self,
        defining: u32,
        defined: Range<Point>,
        segments: &mut Vec<Range<Point>>,
    ) -> bool {
        let [first, last] = self.words;
        let alive = &mut self.alive[defining as usize / 64];
        alive.start &= !(1 << (defining % 64));
        let is_early = first < defining / 64 || alive.start & ((1 << (defining % 64)) - 1) != 0;
        let at_end = alive.end >> (defining % 64) & 1 != 0;
        let mut segment =
            defined.start..if at_end { self.starts[defining as usize + 1] } else { defined.end };
        for word in first..=last {
            let Alive { mut start, end, .. } = std::mem::take(&mut self.alive[word as usize]);
            while start != 0 {
                // Blocks in a row in which it is live throughout, and the one behind them if it is live at the start of that.
                let block = start.trailing_zeros();
                let behind = block + ((start & end) >> block).trailing_ones();
                // default: it is live up to the last block of the word.
                let ends = 1_u64.checked_shl(behind).unwrap_or(0);
                let [from, until] = [block, behind].map(|block| self.starts[(word * 64 + block) as usize]);
                let until = if start & ends == 0 { until } else { self.until[(word * 64 + behind) as usize] };
                start &= !(ends | ends.wrapping_sub(1));
                if segment.end == from {
                    segment.end = until;
                } else {
                    segments.push(std::mem::replace(&mut segment, from..until));
                }
            }
        }
        segments.push(segment);
        is_early
    }
}
