//! The graph of a chain: nodes are programs, identified by index only, and an edge leads from a program and a verdict to the next
//! program or to the end. Compilers and interpreters of chains depend on nothing else.

use std::fmt;

use paceline_frame::Verdict;

/// Maximum number of program runs per packet (`XDP_CHAIN_CALL_MAX` of the chain-call proposal), as chains may have cycles. A packet that would
/// exceed it is aborted.
pub const MAX_RUNS: u32 = 32;

/// Counters of each node of a chain: one for each verdict, and a last one for values that are no verdict.
pub const COUNTS: usize = Verdict::ALL.len() + 1;

/// Index of a program in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(usize);

impl Node {
    /// The node at which packets enter.
    pub const ENTRY: Self = Self(0);

    /// The node of an index.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    /// The index, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Successor of a program. `P` identifies programs: a [`Node`] in a graph, and in descriptions of graphs whatever these use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Next<P = Node> {
    /// The next program.
    Program(P),
    /// The end of the chain, with this verdict.
    End(Verdict),
}

/// Successors of a program for each verdict, in the order of [`Verdict::ALL`], and last for values that are no verdict.
pub type Meaning<P = Node> = [Next<P>; Verdict::ALL.len() + 1];

/// Edges of a program, by verdict. Without an edge, the chain ends with the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edges<P = Node> {
    by_verdict: [Option<Next<P>>; Verdict::ALL.len()],
    wildcard: Option<Next<P>>,
}

impl<P: Copy> Default for Edges<P> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<P: Copy> Edges<P> {
    /// No edges: the chain ends with any verdict.
    pub const NONE: Self = Self { by_verdict: [None; Verdict::ALL.len()], wildcard: None };

    /// The edges with the one for a verdict replaced.
    #[must_use]
    pub fn with(mut self, verdict: Verdict, next: Next<P>) -> Self {
        self.by_verdict[verdict as usize] = Some(next);
        self
    }

    /// The edges with the wildcard replaced: the edge for all values without one of their own, including values that are no
    /// verdict.
    #[must_use]
    pub fn with_wildcard(mut self, next: Next<P>) -> Self {
        self.wildcard = Some(next);
        self
    }

    /// The edge for a verdict itself, without the wildcard.
    #[must_use]
    pub fn own(&self, verdict: Verdict) -> Option<Next<P>> {
        self.by_verdict[verdict as usize]
    }

    /// The edge for values without one of their own.
    #[must_use]
    pub fn wildcard(&self) -> Option<Next<P>> {
        self.wildcard
    }

    /// The successor for a return value. A value that is no verdict, without a wildcard, ends the chain with aborted.
    #[inline]
    #[must_use]
    pub fn after(&self, code: u32) -> Next<P> {
        let verdict = Verdict::from_code(code);
        let own = verdict.and_then(|verdict| self.own(verdict));
        own.or(self.wildcard).unwrap_or(Next::End(verdict.unwrap_or(Verdict::Aborted)))
    }

    /// The edges with their targets mapped by `to`.
    #[must_use]
    pub fn map<T>(&self, to: impl Fn(P) -> T) -> Edges<T> {
        let moved = |next| match next {
            Next::Program(program) => Next::Program(to(program)),
            Next::End(verdict) => Next::End(verdict),
        };
        Edges { by_verdict: self.by_verdict.map(|next| next.map(moved)), wildcard: self.wildcard.map(moved) }
    }

    /// All edges.
    pub fn iter(&self) -> impl Iterator<Item = Next<P>> {
        self.by_verdict.into_iter().chain([self.wildcard]).flatten()
    }

    /// The successor for each verdict, and last for values that are no verdict.
    #[must_use]
    pub fn meaning(&self) -> Meaning<P> {
        std::array::from_fn(|code| self.after(code as u32))
    }
}

/// A graph of programs: one or more nodes; packets enter at [`Node::ENTRY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Edges>,
}

/// Reasons why edges are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph has no node.
    #[error("a chain needs a program")]
    Empty,
    /// The target of an edge does not exist.
    #[error("an edge of program {from} leads to program {to}, and there are {nodes}")]
    NoSuchNode {
        /// Source of the edge.
        from: Node,
        /// Target of the edge.
        to: Node,
        /// Number of nodes.
        nodes: usize,
    },
}

impl Graph {
    /// The graph with these edges, by node; packets enter at node 0. Nodes may be unreachable.
    ///
    /// # Errors
    /// [`GraphError`].
    pub fn new(nodes: Vec<Edges>) -> Result<Self, GraphError> {
        if nodes.is_empty() {
            return Err(GraphError::Empty);
        }
        for (from, edges) in nodes.iter().enumerate() {
            for next in edges.iter() {
                if let Next::Program(to) = next
                    && to.index() >= nodes.len()
                {
                    return Err(GraphError::NoSuchNode { from: Node(from), to, nodes: nodes.len() });
                }
            }
        }
        Ok(Self { nodes })
    }

    /// A graph of a single program.
    #[must_use]
    pub fn one() -> Self {
        Self { nodes: vec![Edges::NONE] }
    }

    /// A sequence of programs, each of which runs if the previous one passed the packet.
    ///
    /// # Errors
    /// [`GraphError::Empty`].
    pub fn sequence(programs: usize) -> Result<Self, GraphError> {
        let edges = |node| match node + 1 {
            next if next < programs => Edges::NONE.with(Verdict::Pass, Next::Program(Node(next))),
            _ => Edges::NONE,
        };
        Self::new((0..programs).map(edges).collect())
    }

    /// Whether a path through the graph may exceed [`MAX_RUNS`]: the graph has a cycle, or a long path.
    #[must_use]
    pub fn may_exceed_runs(&self) -> bool {
        // Longest path to each node, iterated to a fixed point.
        let mut longest = vec![0_u32; self.nodes.len()];
        longest[0] = 1;
        let mut changed = true;
        while changed {
            changed = false;
            for (node, edges) in self.iter() {
                let here = longest[node.index()];
                if here == 0 {
                    continue;
                }
                for next in edges.iter() {
                    let Next::Program(to) = next else { continue };
                    if longest[to.index()] < here + 1 {
                        if here + 1 > MAX_RUNS {
                            return true;
                        }
                        longest[to.index()] = here + 1;
                        changed = true;
                    }
                }
            }
        }
        false
    }

    /// The edges of a node; `None` for a nonexistent one.
    #[inline]
    #[must_use]
    pub fn edges(&self, node: Node) -> Option<&Edges> {
        self.nodes.get(node.0)
    }

    /// All nodes with their edges.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Node, &Edges)> {
        self.nodes.iter().enumerate().map(|(index, edges)| (Node(index), edges))
    }

    /// The edges of all nodes, by index.
    #[must_use]
    pub fn nodes(&self) -> &[Edges] {
        &self.nodes
    }

    /// Successors of each program. Graphs with different edges may have the same meaning.
    #[must_use]
    pub fn meaning(&self) -> Vec<Meaning> {
        self.nodes.iter().map(Edges::meaning).collect()
    }

    /// Reachability of each node.
    #[must_use]
    pub fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut todo = vec![Node::ENTRY];
        while let Some(node) = todo.pop() {
            let Some(mark) = reached.get_mut(node.0).filter(|mark| !**mark) else { continue };
            *mark = true;
            let edges = self.edges(node).map(Edges::meaning);
            todo.extend(edges.into_iter().flatten().filter_map(|next| match next {
                Next::Program(next) => Some(next),
                Next::End(_) => None,
            }));
        }
        reached
    }

    /// For each node, whether an end is reachable from it.
    #[must_use]
    pub fn ends(&self) -> Vec<bool> {
        let meaning = self.meaning();
        let mut ends = vec![false; self.nodes.len()];
        loop {
            let leads = |next: &Next| match *next {
                Next::Program(next) => ends.get(next.0).copied().unwrap_or(true),
                Next::End(_) => true,
            };
            let now: Vec<bool> = meaning.iter().map(|after| after.iter().any(leads)).collect();
            if now == ends {
                return ends;
            }
            ends = now;
        }
    }

    /// The successor of a program that returned `code`. A nonexistent node ends the chain with aborted.
    #[inline]
    #[must_use]
    pub fn after(&self, node: Node, code: u32) -> Next {
        self.edges(node).map_or(Next::End(Verdict::Aborted), |edges| edges.after(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_without_an_edge_follow_the_wildcard() {
        let edges =
            Edges::NONE.with(Verdict::Pass, Next::Program(Node(1))).with_wildcard(Next::End(Verdict::Tx));
        assert_eq!(edges.after(Verdict::Pass as u32), Next::Program(Node(1)));
        assert_eq!(edges.after(Verdict::Drop as u32), Next::End(Verdict::Tx));
        assert_eq!(edges.after(77), Next::End(Verdict::Tx));
    }

    #[test]
    fn chains_end_with_the_verdict_where_nothing_is_said() {
        assert_eq!(Edges::<Node>::NONE.after(Verdict::Redirect as u32), Next::End(Verdict::Redirect));
        assert_eq!(Edges::<Node>::NONE.after(5), Next::End(Verdict::Aborted));
    }

    #[test]
    fn a_circle_that_nothing_leaves_has_no_end() {
        let to = |node| Edges::NONE.with_wildcard(Next::Program(Node(node)));
        let graph =
            Graph::new(vec![Edges::NONE.with(Verdict::Pass, Next::Program(Node(1))), to(2), to(1)]).unwrap();
        assert_eq!(graph.ends(), [true, false, false]);
        let left = Graph::new(vec![to(1), to(0).with(Verdict::Drop, Next::End(Verdict::Drop))]).unwrap();
        assert_eq!(left.ends(), [true, true]);
    }

    #[test]
    fn edges_lead_to_programs_that_are_there() {
        assert_eq!(Graph::new(Vec::new()), Err(GraphError::Empty));
        let edges = Edges::NONE.with_wildcard(Next::Program(Node(1)));
        assert_eq!(
            Graph::new(vec![edges]),
            Err(GraphError::NoSuchNode { from: Node(0), to: Node(1), nodes: 1 })
        );
        assert!(Graph::new(vec![edges, edges]).is_ok());
    }
}
