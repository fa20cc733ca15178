//! Conversion of descriptions to graphs, with the reasons for the order.

use paceline_frame::Verdict;

use super::actions::Actions;
use super::sequence::Placement;
use crate::chain_graph::priority::{Entrant, Tie, compare};
use paceline_spec::graph::{Edges, Graph, GraphError, MAX_RUNS, Next, Node};

/// Reason for the position of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Run priority.
    Priority {
        /// The priority.
        priority: u32,
        /// The tie-breaker against the previous program, if that one has the same priority.
        tie: Option<Tie>,
    },
    /// An absolute placement.
    Placed,
    /// A placement relative to programs with these names.
    PlacedBy(Placement<String>),
    /// The entry of packets.
    Entry,
    /// The target of edges.
    Led(Vec<Lead>),
    /// Unreachable.
    Unreached,
}

/// An incoming edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Source of the edge.
    pub from: Node,
    /// The verdict; `None` for the wildcard.
    pub after: Option<Verdict>,
}

/// A possibly unexpected property of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The last program would continue after this verdict, but no program follows: libxdp's dispatcher passes the packet then.
    LastPasses {
        /// The last program.
        node: Node,
        /// The verdict that is converted to pass.
        verdict: Verdict,
    },
    /// A program is unreachable.
    Unreached {
        /// The program.
        node: Node,
    },
    /// No end is reachable from a program: its packets are aborted after [`MAX_RUNS`] programs.
    Endless {
        /// The first such program.
        node: Node,
    },
}

/// Reasons why a description cannot be converted to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The sequence exceeds the maximum number of runs per packet.
    #[error("{0} programs in a row: no packet runs more than {MAX_RUNS}")]
    TooLong(usize),
    /// The entry program does not exist.
    #[error("packets enter at program {first}, and there are {programs}")]
    NoEntry {
        /// Index of the entry program.
        first: usize,
        /// Number of programs.
        programs: usize,
    },
    /// The edges are invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// A graph with explanations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Index of the given program for each node.
    pub order: Vec<usize>,
    /// The graph.
    pub graph: Graph,
    /// Reason for the position of each node.
    pub reasons: Vec<Reason>,
    /// Possibly unexpected properties.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// The chain that libxdp would build: sorted by run priority, with its rules for ties and for the end, but without its limit of
    /// ten programs.
    ///
    /// If a program's verdict is one of its chain call actions, the next program runs; after the last one, the verdict becomes
    /// pass. libxdp's dispatcher also continues after 31, the return value of its empty slots, and uses the low six bits of return
    /// values only; here values that are no verdict abort the packet.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn by_priority(entrants: &[Entrant]) -> Result<Self, PlanError> {
        let mut order: Vec<_> = entrants.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| compare(a, b).0);
        let before = std::iter::once(None).chain(order.iter().map(Some));
        let reason = |(before, (_, entrant)): (Option<&(usize, &Entrant)>, &(usize, &Entrant))| {
            let tie = before.and_then(|(_, before)| compare(before, entrant).1);
            Reason::Priority { priority: entrant.config.priority, tie }
        };
        let reasons = before.zip(&order).map(reason).collect();
        let actions: Vec<_> = order.iter().map(|(_, entrant)| entrant.config.actions).collect();
        let order = order.into_iter().map(|(index, _)| index).collect();
        let last = actions.len().saturating_sub(1);
        let to_pass = actions.last().copied().unwrap_or_default().with(Verdict::Pass, false);
        let warnings =
            to_pass.iter().map(|verdict| Warning::LastPasses { node: Node::new(last), verdict }).collect();
        let graph = sequence(&actions, Some(Next::End(Verdict::Pass)))?;
        Ok(Self { order, graph, reasons, warnings }.with_unreached())
    }

    /// The programs in the given order: each runs if the verdict of the previous one is one of that one's actions. The verdict of
    /// the last one is the result.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn in_sequence(actions: &[Actions]) -> Result<Self, PlanError> {
        let graph = sequence(actions, None)?;
        let order: Vec<_> = (0..actions.len()).collect();
        let reasons = vec![Reason::Placed; order.len()];
        Ok(Self { order, graph, reasons, warnings: Vec::new() }.with_unreached())
    }

    /// The programs with these edges, whose targets are indices of programs; packets enter at `first`.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn by_edges(first: usize, edges: &[Edges<usize>]) -> Result<Self, PlanError> {
        let programs = edges.len();
        if first >= programs && programs > 0 {
            return Err(PlanError::NoEntry { first, programs });
        }
        // The entry of a graph is node 0.
        let order: Vec<_> =
            std::iter::once(first).chain((0..programs).filter(|index| *index != first)).collect();
        let node_of =
            |index: usize| Node::new(order.iter().position(|other| *other == index).unwrap_or(index));
        let moved =
            order.iter().filter_map(|index| edges.get(*index)).map(|edges| edges.map(node_of)).collect();
        let graph = Graph::new(moved)?;
        let reasons = graph.iter().map(|(node, _)| reason_in(&graph, node)).collect();
        Ok(Self { order, graph, reasons, warnings: Vec::new() }.with_unreached())
    }

    fn with_unreached(mut self) -> Self {
        let reached = self.graph.reached();
        let unreached = reached.iter().enumerate().filter(|(_, reached)| !**reached);
        self.warnings.extend(unreached.map(|(node, _)| Warning::Unreached { node: Node::new(node) }));
        let ends = self.graph.ends();
        let endless = reached.iter().zip(ends).position(|(reached, ends)| *reached && !ends);
        self.warnings.extend(endless.map(|node| Warning::Endless { node: Node::new(node) }));
        self
    }
}

/// A sequence in which each program continues with the next after its actions, and the last one with `end`.
fn sequence(actions: &[Actions], end: Option<Next>) -> Result<Graph, PlanError> {
    let programs = actions.len();
    if programs > MAX_RUNS as usize {
        return Err(PlanError::TooLong(programs));
    }
    let edges = |(node, actions): (usize, &Actions)| {
        let next = if node + 1 < programs { Some(Next::Program(Node::new(node + 1))) } else { end };
        next.map_or(Edges::NONE, |next| {
            actions.iter().fold(Edges::NONE, |edges, verdict| edges.with(verdict, next))
        })
    };
    Ok(Graph::new(actions.iter().enumerate().map(edges).collect())?)
}

fn reason_in(graph: &Graph, node: Node) -> Reason {
    if node == Node::ENTRY {
        return Reason::Entry;
    }
    let leads: Vec<_> = graph.iter().flat_map(|(from, edges)| leads(from, edges, node)).collect();
    if leads.is_empty() { Reason::Unreached } else { Reason::Led(leads) }
}

/// The edges from one node to another.
fn leads(from: Node, edges: &Edges, to: Node) -> impl Iterator<Item = Lead> {
    let own = Verdict::ALL.into_iter().map(|verdict| (edges.own(verdict), Some(verdict)));
    let all = own.chain([(edges.wildcard(), None)]);
    all.filter(move |(next, _)| *next == Some(Next::Program(to))).map(move |(_, after)| Lead { from, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain_graph::RunConfig;

    fn entrant(name: &str, priority: u32, slots: usize, attached: Option<u64>) -> Entrant {
        let config = RunConfig { priority, ..RunConfig::default() };
        Entrant { name: name.to_owned(), config, slots, attached }
    }

    #[test]
    fn ties_are_broken_as_libxdp_does() {
        let entrants = [
            entrant("b", 50, 1, None),
            entrant("a", 50, 9, None),
            entrant("a", 50, 3, None),
            entrant("a", 50, 8, Some(2)),
            entrant("a", 50, 9, Some(1)),
            entrant("z", 10, 9, None),
            entrant("b", 50, 1, None),
        ];
        let plan = Plan::by_priority(&entrants).unwrap();
        assert_eq!(plan.order, [5, 4, 3, 2, 1, 0, 6]);
        let ties: Vec<_> = plan
            .reasons
            .iter()
            .map(|reason| match reason {
                Reason::Priority { tie, .. } => *tie,
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            None,
            None,
            Some(Tie::Time),
            Some(Tie::Attached),
            Some(Tie::Size),
            Some(Tie::Name),
            Some(Tie::Given),
        ];
        assert_eq!(ties.as_slice(), expected);
    }

    #[test]
    fn the_last_of_libxdps_programs_passes_what_it_would_go_on_with() {
        let mut entrants = [entrant("a", 1, 1, None), entrant("b", 2, 1, None)];
        for entrant in &mut entrants {
            entrant.config.actions = Actions::from_iter([Verdict::Drop, Verdict::Tx]);
        }
        let plan = Plan::by_priority(&entrants).unwrap();
        assert_eq!(plan.graph.after(Node::new(0), Verdict::Drop as u32), Next::Program(Node::new(1)));
        assert_eq!(plan.graph.after(Node::new(0), Verdict::Pass as u32), Next::End(Verdict::Pass));
        assert_eq!(plan.graph.after(Node::new(1), Verdict::Drop as u32), Next::End(Verdict::Pass));
        assert_eq!(plan.graph.after(Node::new(1), Verdict::Redirect as u32), Next::End(Verdict::Redirect));
        let verdicts =
            [Verdict::Drop, Verdict::Tx].map(|verdict| Warning::LastPasses { node: Node::new(1), verdict });
        assert_eq!(plan.warnings, verdicts);
    }

    #[test]
    fn a_sequence_ends_with_the_verdict_of_the_last() {
        let actions = [Actions::from_iter([Verdict::Drop]), Actions::from_iter([Verdict::Drop])];
        let plan = Plan::in_sequence(&actions).unwrap();
        assert_eq!(plan.graph.after(Node::new(0), Verdict::Drop as u32), Next::Program(Node::new(1)));
        assert_eq!(plan.graph.after(Node::new(1), Verdict::Drop as u32), Next::End(Verdict::Drop));
        assert_eq!(plan.warnings, []);
    }

    #[test]
    fn programs_behind_one_that_never_goes_on_are_named() {
        let plan = Plan::in_sequence(&[Actions::NONE, Actions::PASS]).unwrap();
        assert_eq!(plan.warnings, [Warning::Unreached { node: Node::new(1) }]);
    }

    #[test]
    fn packets_enter_where_it_is_said() {
        let to = |index: usize| Edges::NONE.with_wildcard(Next::Program(index));
        let plan = Plan::by_edges(2, &[to(1), Edges::NONE, to(0), to(0)]).unwrap();
        assert_eq!(plan.order, [2, 0, 1, 3]);
        assert_eq!(plan.graph.after(Node::new(0), 9), Next::Program(Node::new(1)));
        assert_eq!(plan.graph.after(Node::new(1), 9), Next::Program(Node::new(2)));
        assert_eq!(plan.reasons[0], Reason::Entry);
        assert_eq!(
            plan.reasons[1],
            Reason::Led(vec![
                Lead { from: Node::new(0), after: None },
                Lead { from: Node::new(3), after: None }
            ])
        );
        assert_eq!(plan.warnings, [Warning::Unreached { node: Node::new(3) }]);
        assert_eq!(Plan::by_edges(4, &[Edges::NONE]), Err(PlanError::NoEntry { first: 4, programs: 1 }));
        assert_eq!(Plan::by_edges(0, &[]), Err(PlanError::Graph(GraphError::Empty)));
    }

    #[test]
    fn more_programs_than_a_packet_runs_are_refused() {
        assert!(Plan::in_sequence(&[Actions::PASS; MAX_RUNS as usize]).is_ok());
        let error = Plan::in_sequence(&[Actions::PASS; MAX_RUNS as usize + 1]);
        assert_eq!(error, Err(PlanError::TooLong(33)));
    }
}
