//! The control-flow graph: predecessors, order, dominators.

use crate::arena::Side;
use crate::entity::Block;
use crate::function::Function;

/// An edge: a block, and the position of the target in its terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The block that the edge leaves.
    pub from: Block,
    /// The position of the target.
    pub at: usize,
}

/// Order and predecessors of the blocks that the entry reaches.
#[derive(Clone, Debug)]
pub struct Cfg {
    order: Vec<Block>,
    /// Positions in the order.
    positions: Side<Block, Option<u32>>,
    edges: Side<Block, Vec<Edge>>,
}

impl Cfg {
    /// The graph of a function.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        let order = reverse_post_order(function);
        let mut positions = Side::default();
        let mut edges: Side<Block, Vec<Edge>> = Side::default();
        for (position, &block) in order.iter().enumerate() {
            positions[block] = Some(position as u32);
            for (at, target) in function.block(block).terminator.targets().iter().enumerate() {
                edges[target.block].push(Edge { from: block, at });
            }
        }
        Self { order, positions, edges }
    }

    /// The reached blocks in reverse post-order: each after the blocks that dominate it, and after all its predecessors but those of
    /// back edges.
    #[must_use]
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// Position of a block in the order; `None` if it is not reached.
    #[must_use]
    pub fn position(&self, block: Block) -> Option<u32> {
        self.positions[block]
    }

    /// The edges to a block from reached blocks.
    #[must_use]
    pub fn edges(&self, block: Block) -> &[Edge] {
        &self.edges[block]
    }

    /// The only edge to a block, if there is only one.
    #[must_use]
    pub fn single_edge(&self, block: Block) -> Option<Edge> {
        match *self.edges(block) {
            [edge] => Some(edge),
            _ => None,
        }
    }
}

fn reverse_post_order(function: &Function) -> Vec<Block> {
    let mut order = Vec::new();
    let mut seen: Side<Block, bool> = Side::default();
    let Some(entry) = function.entry() else { return order };
    let mut path = vec![(entry, 0)];
    seen[entry] = true;
    while let Some((block, next)) = path.last_mut() {
        let targets = function.block(*block).terminator.targets();
        // The last target first, so that in the result the first target comes first.
        match targets.len().checked_sub(*next + 1).and_then(|at| targets.get(at)) {
            Some(target) => {
                *next += 1;
                if !std::mem::replace(&mut seen[target.block], true) {
                    path.push((target.block, 0));
                }
            }
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The dominator tree, by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
#[derive(Clone, Debug)]
pub struct Dominators {
    /// By position in the order: the position of the immediate dominator. The entry is its own.
    parents: Vec<u32>,
    /// By position: the first number of a walk of the tree, and the last one below it.
    ranges: Vec<(u32, u32)>,
    children: Vec<Vec<u32>>,
}

impl Dominators {
    /// The tree of a graph.
    #[must_use]
    pub fn of(cfg: &Cfg) -> Self {
        const NONE: u32 = u32::MAX;
        let count = cfg.order.len();
        let mut parents = vec![NONE; count];
        if let Some(entry) = parents.first_mut() {
            *entry = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (position, block) in cfg.order.iter().enumerate().skip(1) {
                let before = cfg.edges(*block).iter().filter_map(|edge| cfg.position(edge.from));
                let known = before.filter(|&before| parents[before as usize] != NONE);
                let parent = known.reduce(|a, b| common(&parents, a, b)).unwrap_or(0);
                changed |= std::mem::replace(&mut parents[position], parent) != parent;
            }
        }
        let mut children = vec![Vec::new(); count];
        for (position, parent) in parents.iter().enumerate().skip(1) {
            children[*parent as usize].push(position as u32);
        }
        let ranges = ranges(&children);
        Self { parents, ranges, children }
    }

    /// Whether the block at one position dominates that at another, or is it.
    #[must_use]
    pub fn dominates(&self, a: u32, b: u32) -> bool {
        let range = |position: u32| self.ranges.get(position as usize).copied();
        let (Some((first, last)), Some((inner, _))) = (range(a), range(b)) else { return false };
        first <= inner && inner <= last
    }

    /// Positions of the blocks that a block dominates immediately.
    #[must_use]
    pub fn children(&self, position: u32) -> &[u32] {
        self.children.get(position as usize).map_or(&[], Vec::as_slice)
    }

    /// Position of the immediate dominator; the entry's own for the entry.
    #[must_use]
    pub fn parent(&self, position: u32) -> u32 {
        self.parents.get(position as usize).copied().unwrap_or(0)
    }
}

fn common(parents: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a > b {
            a = parents[a as usize];
        } else {
            b = parents[b as usize];
        }
    }
    a
}

fn ranges(children: &[Vec<u32>]) -> Vec<(u32, u32)> {
    let mut ranges = vec![(u32::MAX, 0); children.len()];
    if children.is_empty() {
        return ranges;
    }
    let mut next = 0;
    let mut path = vec![(0_u32, 0)];
    while let Some((node, at)) = path.last_mut() {
        let node = *node as usize;
        if *at == 0 {
            ranges[node].0 = next;
            next += 1;
        }
        match children[node].get(*at) {
            Some(child) => {
                *at += 1;
                path.push((*child, 0));
            }
            None => {
                ranges[node].1 = next - 1;
                path.pop();
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Key;
    use crate::text::parse;

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
