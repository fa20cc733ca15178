//! The blocks in which a virtual register is live.

use std::ops::Range;

use super::point::{BEFORE, Point, point};
use crate::lir::Function;
use crate::reuse::{empty, filled};

/// The edges to blocks.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// Incoming edges, grouped by block in order: the predecessor, and the position among its targets.
    all: Vec<(u32, u32)>,
    /// By block: the start of its group in `all`; at the end, the length of `all`.
    starts: Vec<u32>,
}

impl Edges {
    /// Finds the edges of a function.
    pub(super) fn find<O>(&mut self, function: &Function<O>) {
        let Self { all, starts } = self;
        filled(starts, 0, function.blocks.len() + 1);
        function.targets.iter().for_each(|target| starts[target.block as usize] += 1);
        let mut end = 0;
        for start in starts.iter_mut() {
            end += *start;
            *start = end;
        }
        filled(all, (0, 0), end as usize);
        for (number, block) in function.blocks.iter().enumerate().rev() {
            for (at, target) in function.targets_of(block).iter().enumerate().rev() {
                let start = &mut starts[target.block as usize];
                *start -= 1;
                all[*start as usize] = (number as u32, at as u32);
            }
        }
    }

    /// The edges to a block.
    #[inline]
    pub(super) fn to(&self, block: u32) -> &[(u32, u32)] {
        let [start, end] = [block, block + 1].map(|block| self.starts[block as usize] as usize);
        &self.all[start..end]
    }
}

/// Blocks in which a virtual register is found live.
#[derive(Default)]
pub(super) struct Live {
    /// By block: the point at which it begins; at the end, the end of the code.
    starts: Vec<Point>,
    /// By block: the end of the register's live range in it; 0 if it is not live there.
    until: Vec<Point>,
    /// The blocks at whose start the register is live, unless it is their parameter.
    blocks: Vec<u32>,
}

impl Live {
    /// Prepares for a function.
    pub(super) fn begin<O>(&mut self, function: &Function<O>) {
        empty(&mut self.starts, function.blocks.len() + 1);
        self.starts.extend(function.blocks.iter().map(|block| point(block.insts.start, BEFORE)));
        self.starts.push(point(function.insts.len() as u32, BEFORE));
        filled(&mut self.until, 0, function.blocks.len());
        empty(&mut self.blocks, function.blocks.len());
    }

    /// Prepares for a register that is defined in a block, and live there up to a point.
    pub(super) fn define(&mut self, home: u32, needed: Point) {
        self.until[home as usize] = needed;
    }

    /// Notes that the register is live in a block up to a point, and at the block's start unless it is defined there.
    #[inline]
    pub(super) fn reach(&mut self, block: u32, until: Point) {
        let known = &mut self.until[block as usize];
        if *known == 0 {
            self.blocks.push(block);
        }
        *known = until.max(*known);
    }

    /// Propagates liveness from the starts of blocks to the ends of their predecessors.
    pub(super) fn spread(&mut self, edges: &Edges) {
        let mut next = 0;
        while let Some(&block) = self.blocks.get(next) {
            next += 1;
            for &(before, _) in edges.to(block) {
                self.reach(before, self.starts[before as usize + 1]);
            }
        }
    }

    /// Adds the segments of the register, which is defined at a point of a block, and resets its state.
    pub(super) fn take(&mut self, home: u32, start: Point, segments: &mut Vec<Range<Point>>) {
        let last = std::mem::take(&mut self.until[home as usize]);
        let first = segments.len();
        segments.push(start..last);
        let (low, high) =
            self.blocks.iter().fold((u32::MAX, 0), |(low, high), block| (low.min(*block), high.max(*block)));
        // Most blocks of a part of the code are among them, or sorting takes less time than to look for them.
        let is_dense = high.saturating_sub(low) as usize <= 8 * self.blocks.len();
        let mut add = |block: u32| {
            let until = std::mem::take(&mut self.until[block as usize]);
            let from = self.starts[block as usize];
            match segments.last_mut() {
                _ if until == 0 => {}
                Some(last) if last.end == from => last.end = until,
                _ => segments.push(from..until),
            }
        };
        if is_dense {
            (low..=high).for_each(&mut add);
        } else {
            self.blocks.sort_unstable();
            self.blocks.iter().for_each(|block| add(*block));
        }
        self.blocks.clear();
        // A register that is live before its definition is an error, which the first segment shows.
        if segments[first..].iter().any(|segment| segment.start < start) {
            segments[first..].sort_unstable_by_key(|segment| segment.start);
        }
    }
}
