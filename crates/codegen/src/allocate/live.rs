//! The blocks in which a virtual register is live.

use std::ops::Range;

use super::point::{BEFORE, Point, point};
use crate::lir::Function;
use crate::reuse::{empty, filled};

/// In place of an edge: none.
const NONE: u32 = u32::MAX;

/// An edge, by the position of its target in the function's.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The block that it leaves.
    from: u32,
    /// The next edge to the same block.
    next: u32,
}

/// The edges to blocks.
#[derive(Debug, Default)]
pub(super) struct Edges {
    all: Vec<Edge>,
    /// By block: the first edge to it.
    first: Vec<u32>,
}

impl Edges {
    /// Finds the edges of a function.
    pub(super) fn find<O>(&mut self, function: &Function<O>) {
        filled(&mut self.first, NONE, function.blocks.len());
        filled(&mut self.all, Edge { from: NONE, next: NONE }, function.targets.len());
        for (number, block) in (0..).zip(&function.blocks) {
            for (at, target) in block.targets.clone().zip(function.targets_of(block)) {
                let next = std::mem::replace(&mut self.first[target.block as usize], at);
                self.all[at as usize] = Edge { from: number, next };
            }
        }
    }

    /// The edges to a block: the blocks that they leave, and the positions of their targets in the function's.
    #[inline]
    pub(super) fn to(&self, block: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut next = self.first[block as usize];
        std::iter::from_fn(move || {
            let at = next;
            let edge = self.all.get(at as usize)?;
            next = edge.next;
            Some((edge.from, at))
        })
    }
}

/// Whether a virtual register is live in 64 blocks: bits by block.
#[derive(Clone, Copy, Debug, Default)]
struct Alive {
    /// At the start of the block, unless it is a parameter of it.
    start: u64,
    /// At its end.
    end: u64,
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
    /// Blocks at whose start the virtual register is live, and whose predecessors have not been looked at.
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
    pub(super) const fn define(&mut self, home: u32) {
        self.words = [home / 64; 2];
    }

    /// Notes that the virtual register is used in a block up to a point, and defined in another one.
    #[inline]
    pub(super) fn reach(&mut self, block: u32, until: Point) {
        self.until[block as usize] = until;
        self.alive[block as usize / 64].start |= 1 << (block % 64);
        self.push(block);
    }

    #[inline]
    fn push(&mut self, block: u32) {
        let [first, last] = self.words;
        self.words = [first.min(block / 64), last.max(block / 64)];
        self.work.push(block);
    }

    /// Propagates liveness from the starts of blocks to the ends of their predecessors, up to the block of the definition.
    pub(super) fn spread(&mut self, home: u32, edges: &Edges) {
        while let Some(block) = self.work.pop() {
            for (before, _) in edges.to(block) {
                let (alive, bit) = (&mut self.alive[before as usize / 64], 1 << (before % 64));
                alive.end |= bit;
                if alive.start & bit == 0 && before != home {
                    alive.start |= bit;
                    self.push(before);
                }
            }
        }
    }

    /// Adds the segments of the virtual register, which is defined at a point of a block and used there up to another one, and forgets
    /// it. Returns whether it is live before its definition.
    pub(super) fn take(
        &mut self,
        home: u32,
        defined: Range<Point>,
        segments: &mut Vec<Range<Point>>,
    ) -> bool {
        let [first, last] = self.words;
        let mut is_early = false;
        let at_end = self.alive[home as usize / 64].end >> (home % 64) & 1 != 0;
        let end = if at_end { self.starts[home as usize + 1] } else { defined.end };
        let mut segment = defined.start..end;
        for word in first..=last {
            let Alive { mut start, end } = std::mem::take(&mut self.alive[word as usize]);
            while start != 0 {
                let bit = start.trailing_zeros();
                start &= start - 1;
                let block = word * 64 + bit;
                is_early |= block <= home;
                let from = self.starts[block as usize];
                let until = match end >> bit & 1 {
                    0 => self.until[block as usize],
                    _ => self.starts[block as usize + 1],
                };
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
