//! Loops: by back edges, which lead to a block that dominates the one they leave. Cycles without such an edge are no loops here.

use crate::ir::cfg::{Cfg, Dominators};

/// The loops of a graph. Blocks are named by their positions in its order.
#[derive(Clone, Debug)]
pub struct Loops {
    /// The head of the innermost loop that a block is in; a head is in its own loop.
    heads: Vec<Option<u32>>,
    /// The head of the loop around the loop of a head.
    outer: Vec<Option<u32>>,
    /// Number of loops that a block is in.
    depths: Vec<u32>,
}

impl Loops {
    /// The loops of a graph with this dominator tree.
    #[must_use]
    pub fn of(cfg: &Cfg, tree: &Dominators) -> Self {
        let count = cfg.order().len();
        let mut loops = Self { heads: vec![None; count], outer: vec![None; count], depths: vec![0; count] };
        // Inner loops come first: their heads come later in the order. Their blocks are not walked again.
        for head in (0..count as u32).rev() {
            loops.collect(cfg, tree, head);
        }
        for position in 0..count {
            let depth = |head: u32| loops.depths[head as usize];
            loops.depths[position] = match loops.heads[position] {
                // A head comes before the other blocks of its loop.
                Some(head) if head as usize == position => loops.outer[position].map_or(0, depth) + 1,
                Some(head) => depth(head),
                None => 0,
            };
        }
        loops
    }

    /// Finds the blocks of a head's loop that are in no inner one, and the loops in it.
    fn collect(&mut self, cfg: &Cfg, tree: &Dominators, head: u32) {
        let latches = cfg.predecessors(head).iter().filter(|from| tree.dominates(head, **from));
        let mut work: Vec<u32> = latches.copied().collect();
        if work.is_empty() {
            return;
        }
        self.heads[head as usize] = Some(head);
        while let Some(position) = work.pop() {
            let found = self.outermost(position);
            if found == head || !tree.dominates(head, found) {
                continue;
            }
            match self.heads[found as usize] {
                Some(_) => self.outer[found as usize] = Some(head),
                None => self.heads[found as usize] = Some(head),
            }
            work.extend(cfg.predecessors(found));
        }
    }

    /// The head of the outermost loop around a block that is known so far, or the block.
    fn outermost(&self, position: u32) -> u32 {
        // default: a block in no loop is its own outermost one.
        let mut at = self.heads[position as usize].unwrap_or(position);
        while let Some(outer) = self.outer[at as usize] {
            at = outer;
        }
        at
    }

    /// Number of loops that the block at a position is in.
    #[must_use]
    pub fn depth(&self, position: u32) -> u32 {
        self.depths[position as usize]
    }

    /// Position of the head of the innermost loop that a block is in.
    #[must_use]
    pub fn head(&self, position: u32) -> Option<u32> {
        self.heads.get(position as usize).copied().flatten()
    }

    /// Position of the head of the loop around a head's loop.
    #[must_use]
    pub fn outer(&self, head: u32) -> Option<u32> {
        self.outer.get(head as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::arena::Key;
    use crate::ir::entity::Block;
    use crate::ir::text::parse;

    #[test]
    fn nested_loops_and_one_with_two_entries() {
        let module = parse(
            "function 0 \"f\" (r1) {
            block0(v0: i64):
                jump block1
            block1:
                branch.eq.i64 v0, v0, block2, block5
            block2:
                branch.eq.i64 v0, v0, block3, block4
            block3:
                jump block2
            block4:
                jump block1
            block5:
                branch.eq.i64 v0, v0, block6, block7
            block6:
                branch.eq.i64 v0, v0, block7, block8
            block7:
                jump block6
            block8:
                return v0
            }",
        )
        .expect("valid");
        let (_, function) = module.functions.iter().next().expect("one");
        let cfg = Cfg::of(function);
        let loops = Loops::of(&cfg, &Dominators::of(&cfg));
        let at = |number| cfg.position(Block::new(number)).expect("reached");
        let depths: Vec<u32> = (0..9).map(|block| loops.depth(at(block))).collect();
        assert_eq!(depths, [0, 1, 2, 2, 1, 0, 0, 0, 0]);
        assert_eq!(loops.head(at(3)), Some(at(2)));
        assert_eq!(loops.outer(at(2)), Some(at(1)));
        assert_eq!(loops.head(at(4)), Some(at(1)));
    }
}
