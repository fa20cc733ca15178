//! Where virtual registers are live, in the order of the code.
//!
//! The uses of one register after the other are followed backwards to the definition, each block once: the time is that of the result, for
//! any graph whose blocks come after those that dominate them.

use std::ops::Range;

use crate::lir::{Block, Function, Operand, Place, Role, Vreg};

/// A point of the code: four times an instruction's position, and [`BEFORE`] to [`AFTER`].
pub(super) type Point = u32;

/// Moves before an instruction.
pub(super) const BEFORE: Point = 0;
/// The instruction reads its uses.
pub(super) const EARLY: Point = 1;
/// The instruction writes its definitions.
pub(super) const LATE: Point = 2;
/// Moves after the instruction.
pub(super) const AFTER: Point = 3;

/// A point of an instruction.
pub(super) const fn point(inst: u32, at: Point) -> Point {
    4 * inst + at
}

/// A use by an operand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UseAt {
    /// The position of the operand.
    pub(super) operand: u32,
    /// Up to where the operand needs the value in a register of its own: [`LATE`], or [`EARLY`] if it is moved to where its instruction
    /// has it.
    pub(super) until: Point,
}

impl UseAt {
    /// The instruction.
    pub(super) const fn inst(self) -> u32 {
        self.until / 4
    }

    /// Whether it needs a register of its own: those of fixed ones, and of those that a definition takes, are somebody else's.
    pub(super) const fn needs_register(self) -> bool {
        self.until % 4 == LATE
    }
}

/// Definition, uses and cost of a virtual register.
#[derive(Clone, Debug, Default)]
pub(super) struct Range1 {
    /// Point of the definition.
    pub(super) start: Point,
    /// Up to where it needs a register, which its definition writes; the start if it can be in its slot from there.
    pub(super) needed: Point,
    /// Whether it is defined.
    pub(super) is_defined: bool,
    /// Its segments, in order and apart from each other.
    pub(super) segments: Range<u32>,
    /// Its uses by operands, in order.
    pub(super) uses: Range<u32>,
    /// Blocks that begin with it, besides those of which it is a parameter.
    pub(super) live_in: Range<u32>,
    /// Uses and definitions, each by how often it is likely to run.
    pub(super) cost: f32,
}

/// Ranges of all virtual registers.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) vregs: Vec<Range1>,
    /// The virtual registers that are defined, in the order of the points where they begin to be, and of their numbers.
    pub(super) order: Vec<(Point, u32)>,
    pub(super) segments: Vec<Range<Point>>,
    pub(super) uses: Vec<UseAt>,
    pub(super) live_in: Vec<u32>,
    /// By instruction: its block.
    pub(super) blocks: Vec<u32>,
    /// The edges to the blocks, those to a block after those to the block before it: blocks, with the positions of their targets.
    edges: Vec<(u32, u32)>,
    /// By block: where the edges to it begin, and at last where all end.
    edge_starts: Vec<u32>,
}

/// How often a block is likely to run, by the number of loops that it is in.
const fn frequency(depth: u32) -> f32 {
    let depth = if depth < 8 { depth } else { 8 };
    (1_u32 << (3 * depth)) as f32
}

impl Ranges {
    pub(super) fn of<O>(function: &Function<O>) -> Self {
        let count = function.hints.len();
        let mut ranges = Self {
            vregs: vec![Range1::default(); count],
            order: Vec::with_capacity(count),
            segments: Vec::with_capacity(2 * count),
            live_in: Vec::with_capacity(2 * count),
            blocks: vec![0; function.insts.len()],
            ..Self::default()
        };
        for (number, block) in (0..).zip(&function.blocks) {
            ranges.blocks[block.insts.start as usize..block.insts.end as usize].fill(number);
        }
        ranges.edges(function);
        ranges.definitions(function);
        let ends = ranges.uses_by_vreg(function);
        let points = |block: &Block| point(block.insts.start, BEFORE)..point(block.insts.end, BEFORE);
        let mut live = Live {
            bounds: function.blocks.iter().map(points).collect(),
            block: vec![u32::MAX; function.blocks.len()],
            ends: Vec::with_capacity(function.blocks.len()),
            work: Vec::with_capacity(function.blocks.len()),
            sorted: Vec::new(),
        };
        for vreg in 0..count as u32 {
            if !ranges.vregs[vreg as usize].is_defined {
                continue;
            }
            let start = ranges.segments.len() as u32;
            if !ranges.live_at_home(vreg, &ends) {
                ranges.live(vreg, &ends, &mut live);
            }
            ranges.vregs[vreg as usize].segments = start..ranges.segments.len() as u32;
        }
        ranges
    }

    /// Collects the edges.
    fn edges<O>(&mut self, function: &Function<O>) {
        self.edge_starts = vec![0; function.blocks.len() + 1];
        function.targets.iter().for_each(|target| self.edge_starts[target.block as usize + 1] += 1);
        for block in 0..function.blocks.len() {
            self.edge_starts[block + 1] += self.edge_starts[block];
        }
        let mut next = self.edge_starts.clone();
        self.edges = vec![(0, 0); next.last().map_or(0, |count| *count as usize)];
        for (number, block) in (0..).zip(&function.blocks) {
            for (at, target) in (0..).zip(function.targets_of(block)) {
                let next = &mut next[target.block as usize];
                self.edges[*next as usize] = (number, at);
                *next += 1;
            }
        }
    }

    /// The edges to a block.
    #[inline]
    pub(super) fn edges_to(&self, block: u32) -> &[(u32, u32)] {
        let [start, end] = [block, block + 1].map(|block| self.edge_starts[block as usize] as usize);
        &self.edges[start..end]
    }

    /// A virtual register that is live before its definition. The scan takes definitions in the order of the code, so it must see none.
    pub(super) fn live_before_definition(&self) -> Option<u32> {
        let is_early = |range: &Range1| {
            let first = self.segments.get(range.segments.start as usize);
            !range.segments.is_empty() && first.is_some_and(|first| first.start < range.start)
        };
        (0..).zip(&self.vregs).find(|(_, range)| is_early(range)).map(|(vreg, _)| vreg)
    }

    fn definitions<O>(&mut self, function: &Function<O>) {
        for block in &function.blocks {
            let start = point(block.insts.start, BEFORE);
            let cost = frequency(block.depth);
            for param in function.params_of(block) {
                self.define(*param, start, start, cost);
            }
            for inst in block.insts.clone() {
                let data = &function.insts[inst as usize];
                for Operand { vreg, role, place } in function.operands_of(data) {
                    let (start, needed) = match (role, place) {
                        (Role::Use, _) => continue,
                        (Role::Def, Place::Any) => (point(inst, LATE), point(inst, AFTER)),
                        (Role::Def, Place::Same(_) | Place::Early) => {
                            (point(inst, EARLY), point(inst, AFTER))
                        }
                        // It moves to where it will be.
                        (Role::Def, Place::Fixed(_)) => (point(inst, AFTER), point(inst, AFTER)),
                    };
                    self.define(*vreg, start, needed, cost);
                }
            }
        }
        // They are nearly sorted: only those of one instruction, or block, may be out of order.
        if !self.order.is_sorted() {
            self.order.sort();
        }
    }

    #[inline]
    fn define(&mut self, vreg: Vreg, start: Point, needed: Point, cost: f32) {
        let range = &mut self.vregs[vreg.0 as usize];
        (range.start, range.needed, range.is_defined) = (start, needed, true);
        range.cost += cost;
        self.order.push((start, vreg.0));
    }

    /// Collects the uses by operands, and returns the blocks at whose ends virtual registers are arguments.
    fn uses_by_vreg<O>(&mut self, function: &Function<O>) -> Ends {
        // The end counts the uses at first.
        let is_use = |operand: &&Operand| operand.role == Role::Use;
        for operand in function.operands.iter().filter(is_use) {
            self.vregs[operand.vreg.0 as usize].uses.end += 1;
        }
        let mut start = 0;
        for range in &mut self.vregs {
            let count = range.uses.end;
            range.uses = start..start;
            start += count;
        }
        self.uses = vec![UseAt::default(); start as usize];
        let mut ends =
            Ends { last: vec![None; function.hints.len()], all: Vec::with_capacity(function.lists.len()) };
        for (number, block) in (0..).zip(&function.blocks) {
            let cost = frequency(block.depth);
            for inst in block.insts.clone() {
                let data = &function.insts[inst as usize];
                let operands = function.operands_of(data);
                // An operand of which a definition takes the register is moved there before.
                let takes = operands.iter().any(|operand| matches!(operand.place, Place::Same(_)));
                let is_taken = |at| takes && operands.iter().any(|other| other.place == Place::Same(at));
                for (operand, (at, &Operand { vreg, role, place })) in
                    (data.operands.start..).zip((0..).zip(operands))
                {
                    if role == Role::Use {
                        let until = if place == Place::Any && !is_taken(at) { LATE } else { EARLY };
                        let range = &mut self.vregs[vreg.0 as usize];
                        self.uses[range.uses.end as usize] = UseAt { operand, until: point(inst, until) };
                        range.uses.end += 1;
                        range.cost += cost;
                    }
                }
            }
            for arg in function.targets_of(block).iter().flat_map(|target| function.args_of(target)) {
                let before = ends.last[arg.0 as usize].replace(ends.all.len() as u32);
                ends.all.push((number, before));
                self.vregs[arg.0 as usize].cost += cost;
            }
        }
        ends
    }

    /// The uses of a virtual register by operands.
    pub(super) fn uses_of(&self, vreg: u32) -> &[UseAt] {
        let Range { start, end } = self.vregs[vreg as usize].uses.clone();
        &self.uses[start as usize..end as usize]
    }

    /// Adds the segment of a virtual register that is used in the block of its definition only. Returns whether it is.
    fn live_at_home(&mut self, vreg: u32, ends: &Ends) -> bool {
        let range = &self.vregs[vreg as usize];
        let (start, uses) = (range.start, self.uses_of(vreg));
        let home = self.blocks[(start / 4) as usize];
        // Uses are in the order of the code, and those before the definition are behind it on a way around.
        let is_home = |used: &UseAt| self.blocks[used.inst() as usize] == home && used.until > start;
        let is_ended = ends.last[vreg as usize].is_some();
        if is_ended || !uses.first().is_none_or(is_home) || !uses.last().is_none_or(is_home) {
            return false;
        }
        // A definition needs a register, even if its value is never read.
        let last = uses.iter().map(|used| used.until).max();
        let until = last.unwrap_or(0).max(range.needed).max(start + 1);
        self.segments.push(start..until);
        true
    }

    /// Adds the segments of a virtual register.
    fn live(&mut self, vreg: u32, ends: &Ends, live: &mut Live) {
        let range = &self.vregs[vreg as usize];
        let (start, needed) = (range.start, range.needed.max(range.start + 1));
        let live_in = self.live_in.len() as u32;
        let home = self.blocks[(start / 4) as usize];
        live.reach(home, needed);
        for used in self.uses_of(vreg) {
            live.reach(self.blocks[used.inst() as usize], used.until);
        }
        let mut next = ends.last[vreg as usize];
        while let Some((block, before)) = next.and_then(|at| ends.all.get(at as usize)) {
            live.reach_end(*block);
            next = *before;
        }
        while let Some(block) = live.work.pop() {
            if block == home {
                continue;
            }
            self.live_in.push(block);
            for &(before, _) in self.edges_to(block) {
                live.reach_end(before);
            }
        }
        self.vregs[vreg as usize].live_in = live_in..self.live_in.len() as u32;
        let first = self.segments.len();
        live.sort();
        for (block, until) in live.ends.drain(..) {
            live.block[block as usize] = u32::MAX;
            let start = if block == home { start } else { live.bounds[block as usize].start };
            match self.segments[first..].last_mut() {
                Some(last) if last.end == start => last.end = until,
                _ => self.segments.push(start..until),
            }
        }
    }
}

/// Blocks at whose ends virtual registers are arguments.
struct Ends {
    /// By virtual register: the position of the last one.
    last: Vec<Option<u32>>,
    /// The blocks, each with the position of the one before for the same virtual register.
    all: Vec<(u32, Option<u32>)>,
}

/// Blocks in which a virtual register is found live.
struct Live {
    /// By block: its points.
    bounds: Vec<Range<Point>>,
    /// By block: its position among the ends.
    block: Vec<u32>,
    /// Blocks, each with the point up to which the register is live in it.
    ends: Vec<(u32, Point)>,
    /// Blocks whose predecessors are not looked at yet.
    work: Vec<u32>,
    /// Room for sorting.
    sorted: Vec<(u32, Point)>,
}

impl Live {
    /// Sorts the ends by blocks: by looking for them in order, if most blocks of a part of the code are among them.
    fn sort(&mut self) {
        if self.ends.len() <= 16 {
            return self.ends.sort_unstable();
        }
        let blocks = || self.ends.iter().map(|(block, _)| *block as usize);
        let (first, last) = (blocks().min().unwrap_or(0), blocks().max().unwrap_or(0));
        if last - first > 8 * self.ends.len() {
            return self.ends.sort_unstable();
        }
        let in_order = self.block[first..=last].iter().filter_map(|at| self.ends.get(*at as usize));
        self.sorted.clear();
        self.sorted.extend(in_order);
        std::mem::swap(&mut self.ends, &mut self.sorted);
    }

    /// The register is live at the end of a block.
    #[inline]
    fn reach_end(&mut self, block: u32) {
        self.reach(block, self.bounds[block as usize].end);
    }

    #[inline]
    fn reach(&mut self, block: u32, until: Point) {
        match self.ends.get_mut(self.block[block as usize] as usize) {
            Some((_, known)) => *known = until.max(*known),
            None => {
                self.block[block as usize] = self.ends.len() as u32;
                self.ends.push((block, until));
                self.work.push(block);
            }
        }
    }
}
