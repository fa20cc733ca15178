//! The control-flow graph: predecessors, order, dominators.

use std::ops::Range;

use crate::ir::arena::Key;
use crate::ir::entity::Block;
use crate::ir::function::Function;

/// An edge: a block, and the position of the target in its terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The block that the edge leaves.
    pub from: Block,
    /// The position of the target.
    pub at: usize,
}

/// Order and predecessors of the blocks that the entry reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cfg {
    order: Vec<Block>,
    /// By block: its position in the order, or [`NOWHERE`].
    positions: Vec<u32>,
    /// Edges to the blocks, those of a position after those of the position before it.
    edges: Vec<Edge>,
    /// By edge: the position of the block that it leaves.
    predecessors: Vec<u32>,
    /// Where the edges to a position begin, and at last where all end.
    starts: Vec<u32>,
    /// Whether an edge leads back in the order.
    has_loops: bool,
}

/// The position of a block that is not reached.
const NOWHERE: u32 = u32::MAX;

impl Cfg {
    /// The graph of a function.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        // Numbers of edges at first.
        let (order, mut positions) = walk(function);
        // Sorted by the block they lead to, by counting. A start is that of the position before it until the edges are there.
        let mut starts = Vec::with_capacity(order.len() + 2);
        starts.extend([0, 0]);
        let mut count = 0;
        starts.extend((0..).zip(&order).map(|(position, block)| {
            count += std::mem::replace(&mut positions[block.index()], position);
            count
        }));
        let mut predecessors = vec![0; count as usize];
        let mut edges = vec![Edge { from: Block::new(0), at: 0 }; count as usize];
        let mut has_loops = false;
        for (before, &from) in (0..).zip(&order) {
            for (at, target) in function.block(from).terminator.targets().iter().enumerate() {
                let position = positions[target.block.index()];
                has_loops |= position <= before;
                let next = &mut starts[position as usize + 1];
                (edges[*next as usize], predecessors[*next as usize]) = (Edge { from, at }, before);
                *next += 1;
            }
        }
        starts.pop();
        Self { order, positions, edges, predecessors, starts, has_loops }
    }

    /// Whether an edge leads back in the order: all others lead forward in it.
    #[must_use]
    pub const fn has_loops(&self) -> bool {
        self.has_loops
    }

    /// The reached blocks in reverse post-order: each after the blocks that dominate it, and after all its predecessors but those of
    /// back edges.
    #[must_use]
    #[inline]
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// The reached blocks in the order of the function's layout.
    pub(crate) fn reached(&self, function: &Function) -> Vec<Block> {
        function.layout.iter().copied().filter(|block| self.position(*block).is_some()).collect()
    }

    /// Position of a block in the order; `None` if it is not reached.
    #[must_use]
    #[inline]
    pub fn position(&self, block: Block) -> Option<u32> {
        self.positions.get(block.index()).copied().filter(|position| *position != NOWHERE)
    }

    /// The edges to a block from reached blocks.
    #[must_use]
    #[inline]
    pub fn edges(&self, block: Block) -> &[Edge] {
        let Some(position) = self.position(block) else { return &[] };
        &self.edges[self.edges_to(position)]
    }

    /// Positions of the blocks before that at a position, one for each edge.
    #[must_use]
    #[inline]
    pub fn predecessors(&self, position: u32) -> &[u32] {
        &self.predecessors[self.edges_to(position)]
    }

    #[inline]
    fn edges_to(&self, position: u32) -> Range<usize> {
        let bound = |at: usize| self.starts[at] as usize;
        bound(position as usize)..bound(position as usize + 1)
    }

    /// The only edge to a block, if there is only one.
    #[must_use]
    #[inline]
    pub fn single_edge(&self, block: Block) -> Option<Edge> {
        match *self.edges(block) {
            [edge] => Some(edge),
            _ => None,
        }
    }
}

/// The blocks that are reached in reverse post-order of a walk, depth first; and by block the number of edges to it, or [`NOWHERE`] for those
/// that are not reached.
fn walk(function: &Function) -> (Vec<Block>, Vec<u32>) {
    let mut order = Vec::with_capacity(function.block_count());
    let mut counts = vec![NOWHERE; function.block_count()];
    let Some(entry) = function.entry() else { return (order, counts) };
    // Each with its targets that are left.
    let mut path = Vec::with_capacity(function.block_count().min(64));
    counts[entry.index()] = 0;
    path.push((entry, function.block(entry).terminator.targets()));
    while let Some((block, left)) = path.last_mut() {
        // The last target first, so that in the result the first target comes first.
        let Some((target, rest)) = left.split_last() else {
            order.push(*block);
            path.pop();
            continue;
        };
        *left = rest;
        match &mut counts[target.block.index()] {
            new @ &mut NOWHERE => {
                *new = 1;
                path.push((target.block, function.block(target.block).terminator.targets()));
            }
            known => *known += 1,
        }
    }
    order.reverse();
    (order, counts)
}

/// The dominator tree.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// By position in the order: the position of the immediate dominator. The entry is its own.
    parents: Vec<u32>,
    /// By position: the first number of a walk of the tree, and the last one below it.
    ranges: Vec<(u32, u32)>,
    /// The children of all blocks, those of a position after those of the position before it.
    children: Vec<u32>,
    /// Where those of a position begin, and at last where all end.
    starts: Vec<u32>,
}

impl Dominators {
    /// The tree of a graph.
    #[must_use]
    pub fn of(cfg: &Cfg) -> Self {
        // default: the other search takes over where the ways up are long.
        let parents = by_meeting(cfg).unwrap_or_else(|| Search::new(cfg).parents(cfg));
        let mut starts = vec![0_u32; parents.len() + 1];
        parents.iter().skip(1).for_each(|parent| starts[*parent as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut children = vec![0; parents.len().saturating_sub(1)];
        for (position, parent) in (0..).zip(&parents).skip(1) {
            let next = &mut next[*parent as usize];
            children[*next as usize] = position;
            *next += 1;
        }
        let ranges = ranges(&parents);
        Self { parents, ranges, children, starts }
    }

    /// Whether the block at one position dominates that at another, or is it.
    #[must_use]
    #[inline]
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        let ((first, last), (inner, _)) = (self.ranges[a as usize], self.ranges[b as usize]);
        first <= inner && inner <= last
    }

    /// Positions of the blocks that a block dominates immediately.
    #[must_use]
    #[inline]
    pub fn children(&self, position: u32) -> &[u32] {
        let bound = |at: u32| self.starts[at as usize] as usize;
        &self.children[bound(position)..bound(position + 1)]
    }

    /// Position of the immediate dominator; the entry's own for the entry.
    #[must_use]
    pub fn parent(&self, position: u32) -> u32 {
        self.parents[position as usize]
    }
}

/// How many steps up the tree the simple search may take for each edge.
const STEPS: usize = 8;

/// Positions of the immediate dominators, by position: those that the ways up from all predecessors meet at, as in Cooper, Harvey and
/// Kennedy, "A Simple, Fast Dominance Algorithm". `None` for a graph that takes too many steps.
fn by_meeting(cfg: &Cfg) -> Option<Vec<u32>> {
    let count = cfg.order.len();
    let mut parents = vec![NOWHERE; count];
    if let Some(entry) = parents.first_mut() {
        *entry = 0;
    }
    let mut left = STEPS * (cfg.edges.len() + count);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        let mut has_loops = false;
        for position in 1..count as u32 {
            let mut parent = NOWHERE;
            for &before in cfg.predecessors(position) {
                has_loops |= before >= position;
                if parents[before as usize] == NOWHERE {
                    continue;
                }
                let mut other = if parent == NOWHERE { before } else { parent };
                parent = before;
                while parent != other {
                    left = left.checked_sub(1)?;
                    let above = if parent > other { &mut parent } else { &mut other };
                    *above = parents[*above as usize];
                }
            }
            changed |= parents[position as usize] != parent;
            parents[position as usize] = parent;
        }
        changed &= has_loops;
        left = left.checked_sub(count)?;
    }
    Some(parents)
}

/// The search for dominators by Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph", with simple links: its
/// time is the number of edges times a logarithm for any graph. Blocks are numbered in the order of the walk.
struct Search {
    /// The blocks by number: their positions, each with the number of the block that it was first reached from.
    walk: Vec<(u32, u32)>,
    /// By position in the order: the number.
    numbers: Vec<u32>,
    /// The semidominator of a block that was handled, and its own number before.
    semi: Vec<u32>,
    /// The block above in the forest of handled blocks; itself for a root.
    above: Vec<u32>,
    /// The block with the least semidominator on the way to the root, as far as the way was shortened.
    label: Vec<u32>,
    /// The way that is shortened.
    way: Vec<u32>,
}

impl Search {
    fn new(cfg: &Cfg) -> Self {
        let walk = walk_of_positions(cfg);
        let mut numbers = vec![0; walk.len()];
        for (number, (position, _)) in walk.iter().enumerate() {
            numbers[*position as usize] = number as u32;
        }
        let own: Vec<u32> = (0..walk.len() as u32).collect();
        Self { walk, numbers, semi: own.clone(), above: own.clone(), label: own, way: Vec::new() }
    }

    /// Positions of the immediate dominators, by position.
    fn parents(mut self, cfg: &Cfg) -> Vec<u32> {
        let count = self.walk.len();
        let mut dominators = vec![0; count];
        // Blocks by their semidominators, as lists: the first of each, and the next after each.
        let (mut first, mut next) = (vec![0; count], vec![0; count]);
        for number in (1..count).rev() {
            let (position, parent) = self.walk[number];
            for &before in cfg.predecessors(position) {
                let least = self.least(self.numbers[before as usize]);
                self.semi[number] = self.semi[number].min(self.semi[least as usize]);
            }
            let semi = self.semi[number] as usize;
            (next[number], first[semi]) = (first[semi], number);
            self.above[number] = parent;
            let mut waiting = std::mem::take(&mut first[parent as usize]);
            while waiting != 0 {
                let least = self.least(waiting as u32);
                let is_below = self.semi[least as usize] < self.semi[waiting];
                dominators[waiting] = if is_below { least } else { parent };
                waiting = next[waiting];
            }
        }
        let mut parents = vec![0; count];
        for number in 1..count {
            if dominators[number] != self.semi[number] {
                dominators[number] = dominators[dominators[number] as usize];
            }
            parents[self.walk[number].0 as usize] = self.walk[dominators[number] as usize].0;
        }
        parents
    }

    /// The block with the least semidominator between one and the root of its tree, which is left out. Shortens the way.
    fn least(&mut self, number: u32) -> u32 {
        let mut at = number;
        while self.above[self.above[at as usize] as usize] != self.above[at as usize] {
            self.way.push(at);
            at = self.above[at as usize];
        }
        while let Some(at) = self.way.pop() {
            let at = at as usize;
            let above = self.above[at] as usize;
            if self.semi[self.label[above] as usize] < self.semi[self.label[at] as usize] {
                self.label[at] = self.label[above];
            }
            self.above[at] = self.above[above];
        }
        self.label[number as usize]
    }
}

/// A walk over the graph, depth first: positions, each with the index here of the block that it was first reached from.
fn walk_of_positions(cfg: &Cfg) -> Vec<(u32, u32)> {
    let count = cfg.order.len();
    let mut targets = vec![Vec::new(); count];
    for position in 0..count as u32 {
        cfg.predecessors(position).iter().for_each(|before| targets[*before as usize].push(position));
    }
    let (mut walk, mut is_reached) = (Vec::with_capacity(count), vec![false; count]);
    let mut path: Vec<(u32, u32)> = (count > 0).then_some((0, 0)).into_iter().collect();
    while let Some((position, parent)) = path.pop() {
        if !std::mem::replace(&mut is_reached[position as usize], true) {
            let number = walk.len() as u32;
            walk.push((position, parent));
            path.extend(targets[position as usize].iter().map(|target| (*target, number)));
        }
    }
    walk
}

/// By position: the first number of a walk of the tree, and the last one below it. A block comes after its parent in the order.
fn ranges(parents: &[u32]) -> Vec<(u32, u32)> {
    // The number of blocks below each, itself included.
    let mut sizes = vec![1_u32; parents.len()];
    for position in (1..parents.len()).rev() {
        sizes[parents[position] as usize] += sizes[position];
    }
    // The next number below each.
    let mut next = vec![1_u32; parents.len()];
    let mut ranges = vec![(0, sizes.first().map_or(0, |size| size - 1)); parents.len()];
    for position in 1..parents.len() {
        let parent = parents[position] as usize;
        let first = next[parent];
        next[parent] += sizes[position];
        next[position] = first + 1;
        ranges[position] = (first, first + sizes[position] - 1);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use paceline_isa::Condition;

    use super::*;
    use crate::ir::Op;
    use crate::ir::function::{Target, Terminator};
    use crate::ir::text::parse;
    use crate::ir::types::{Kind, Type};

    /// A function whose blocks may go anywhere, but to the entry.
    fn tangle(blocks: u64, mut seed: u64) -> Function {
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) % below
        };
        let mut function = Function::default();
        for _ in 0..blocks {
            function.add_block();
        }
        let entry = Block::new(0);
        let value = function.add_param(entry, Type::I64, Kind::Unknown);
        for block in (0..blocks as usize).map(Block::new) {
            let mut target = || Target::to(Block::new(1 + next(blocks - 1) as usize));
            let (first, second) = (target(), target());
            let end = match next(4) {
                0 => Terminator::Jump(first),
                _ => Terminator::Branch {
                    condition: Condition::Eq,
                    ty: Type::I64,
                    args: [value; 2],
                    targets: [first, second],
                },
            };
            function.terminate(block, end, None);
        }
        function
    }

    #[test]
    fn both_searches_find_the_same_dominators() {
        let mut found = 0;
        for seed in 0..300 {
            let cfg = Cfg::of(&tangle(2 + seed % 40, seed));
            if let Some(parents) = by_meeting(&cfg) {
                assert_eq!(parents, Search::new(&cfg).parents(&cfg), "seed {seed}");
                found += 1;
            }
        }
        assert!(found > 100, "{found}");
        // Half of the blocks of a long way may each be reached from its start: the ways up are as long.
        let mut function = Function::default();
        let blocks: Vec<Block> = (0..400).map(|_| function.add_block()).collect();
        let zero = function.append_value(blocks[0], Op::constant(Type::I64, 0), None);
        for pair in blocks.windows(2).take(200) {
            function.terminate(pair[0], Terminator::Jump(Target::to(pair[1])), None);
        }
        for (at, &block) in blocks.iter().enumerate().skip(200).take(199) {
            let targets = [blocks[at + 1], blocks[399]].map(Target::to);
            let args = [zero; 2];
            function.terminate(
                block,
                Terminator::Branch { condition: Condition::Eq, ty: Type::I64, args, targets },
                None,
            );
        }
        function.terminate(blocks[399], Terminator::Return(zero), None);
        let cfg = Cfg::of(&function);
        assert_eq!(Dominators::of(&cfg).parents, Search::new(&cfg).parents(&cfg));
        assert!(by_meeting(&cfg).is_none());
    }

    #[test]
    fn dominators_of_a_loop_with_a_branch() {
        let module = parse(
            "function 0 \"f\" (r1) {
            block0(v0: i64):
                jump block1
            block1:
                branch.eq.i64 v0, v0, block2, block3
            block2:
                jump block4
            block3:
                jump block4
            block4:
                branch.ne.i64 v0, v0, block1, block5
            block5:
                return v0
            }",
        )
        .expect("valid");
        let (_, function) = module.functions.iter().next().expect("one");
        let cfg = Cfg::of(function);
        let tree = Dominators::of(&cfg);
        let at = |number| cfg.position(Block::new(number)).expect("reached");
        for (dominator, dominated, expected) in [
            (0, 5, true),
            (1, 4, true),
            (2, 4, false),
            (3, 4, false),
            (4, 1, false),
            (4, 5, true),
            (4, 4, true),
        ] {
            assert_eq!(tree.dominates(at(dominator), at(dominated)), expected, "{dominator} {dominated}");
        }
        assert_eq!(tree.parent(at(4)), at(1));
        assert_eq!(cfg.edges(Block::new(4)).len(), 2);
    }
}
