//! From descriptions to graphs, with the reasons.

use std::cmp::Ordering;

use paceline_frame::Verdict;

use crate::{Actions, Edges, Graph, GraphError, MAX_RUNS, Next, Node, Placement, RunConfig};

/// A program as libxdp sees it when it puts programs in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// Name of its function.
    pub name: String,
    /// When it runs, and after which verdicts the chain goes on.
    pub config: RunConfig,
    /// Slots of its main function, as they are in the object.
    pub slots: usize,
    /// When it was attached, for programs that are in the chain already: lower numbers earlier.
    pub attached: Option<u64>,
}

/// What decides between two programs of one priority (`cmp_xdp_programs` in `lib/libxdp/libxdp.c`, and
/// `lib/libxdp/protocol.org`, "Loading and attaching component programs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tie {
    /// Their names, byte by byte.
    Name,
    /// One is in the chain already, and comes first.
    Attached,
    /// Both are new, and the shorter one comes first.
    Size,
    /// Both are in the chain, and the one that came first stays before. libxdp looks at the kernel's tags before that,
    /// which programs that never met a kernel do not have.
    Time,
    /// Nothing: they stay in the order in which they were given.
    Given,
}

/// Why a program is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its run priority.
    Priority {
        /// The priority.
        priority: u32,
        /// What put it behind the program before, where that one has the same.
        tie: Option<Tie>,
    },
    /// It was put there.
    Placed,
    /// The same by other programs, which have these names.
    PlacedBy(Placement<String>),
    /// Packets enter there.
    Entry,
    /// Edges lead to it.
    Led(Vec<Lead>),
    /// Nothing leads to it.
    Unreached,
}

/// An edge, seen from where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Where it begins.
    pub from: Node,
    /// After which verdict; `None` for the wildcard.
    pub after: Option<Verdict>,
}

/// What a chain does that its user may not expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The last program goes on after this verdict, and nothing is left to go on to: libxdp's dispatcher passes the
    /// packet then.
    LastPasses {
        /// The last program.
        node: Node,
        /// The verdict that becomes pass.
        verdict: Verdict,
    },
    /// No packet can come to a program.
    Unreached {
        /// The program.
        node: Node,
    },
    /// From a program on, no verdict leads to an end: its packets are aborted after [`MAX_RUNS`] programs.
    Endless {
        /// The first such program.
        node: Node,
    },
}

/// Why a description makes no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No packet runs so many programs.
    #[error("{0} programs in a row: no packet runs more than {MAX_RUNS}")]
    TooLong(usize),
    /// The program where packets enter is not there.
    #[error("packets enter at program {first}, and there are {programs}")]
    NoEntry {
        /// Where they enter.
        first: usize,
        /// Programs that there are.
        programs: usize,
    },
    /// The edges make no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// A graph, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which of the given programs each node is.
    pub order: Vec<usize>,
    /// What runs after what.
    pub graph: Graph,
    /// Why each node is where it is.
    pub reasons: Vec<Reason>,
    /// What may not be expected.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// The chain that libxdp would make: sorted by run priority, with its rules for ties and for the end, and without
    /// its limit of ten programs.
    ///
    /// When a program's verdict is one of its chain call actions, the next program runs, and after the last one the
    /// verdict is pass. libxdp's dispatcher also goes on after 31, which its empty slots return, and looks at the low six
    /// bits of a return value only; here values that are no verdict abort the packet.
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
        let warnings = to_pass.iter().map(|verdict| Warning::LastPasses { node: last, verdict }).collect();
        let graph = sequence(&actions, Some(Next::End(Verdict::Pass)))?;
        Ok(Self { order, graph, reasons, warnings }.with_unreached())
    }

    /// The programs in the order given, each of which runs when the verdict of the one before is one of its actions. The
    /// verdict of the last one stands.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn in_sequence(actions: &[Actions]) -> Result<Self, PlanError> {
        let graph = sequence(actions, None)?;
        let order: Vec<_> = (0..actions.len()).collect();
        let reasons = vec![Reason::Placed; order.len()];
        Ok(Self { order, graph, reasons, warnings: Vec::new() }.with_unreached())
    }

    /// The programs with these edges, which lead to programs by their index; packets enter at `first`.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn by_edges(first: usize, edges: &[Edges]) -> Result<Self, PlanError> {
        let programs = edges.len();
        if first >= programs && programs > 0 {
            return Err(PlanError::NoEntry { first, programs });
        }
        // Graphs are entered at node 0.
        let order: Vec<_> =
            std::iter::once(first).chain((0..programs).filter(|index| *index != first)).collect();
        let node_of = |index: usize| order.iter().position(|other| *other == index).unwrap_or(index);
        let moved =
            order.iter().filter_map(|index| edges.get(*index)).map(|edges| edges.map(node_of)).collect();
        let graph = Graph::new(moved)?;
        let reasons = (0..order.len()).map(|node| reason_in(&graph, node)).collect();
        Ok(Self { order, graph, reasons, warnings: Vec::new() }.with_unreached())
    }

    fn with_unreached(mut self) -> Self {
        let reached = self.graph.reached();
        let unreached = reached.iter().enumerate().filter(|(_, reached)| !**reached);
        self.warnings.extend(unreached.map(|(node, _)| Warning::Unreached { node }));
        let ends = self.graph.ends();
        let endless = reached.iter().zip(ends).position(|(reached, ends)| *reached && !ends);
        self.warnings.extend(endless.map(|node| Warning::Endless { node }));
        self
    }
}

/// Each program goes on to the next after its actions, and the last one to `end`.
fn sequence(actions: &[Actions], end: Option<Next>) -> Result<Graph, PlanError> {
    let programs = actions.len();
    if programs > MAX_RUNS as usize {
        return Err(PlanError::TooLong(programs));
    }
    let edges = |(node, actions): (usize, &Actions)| {
        let next = if node + 1 < programs { Some(Next::Program(node + 1)) } else { end };
        next.map_or(Edges::NONE, |next| {
            actions.iter().fold(Edges::NONE, |edges, verdict| edges.with(verdict, next))
        })
    };
    Ok(Graph::new(actions.iter().enumerate().map(edges).collect())?)
}

/// libxdp's order, and what decided if it was not the priority.
fn compare(a: &Entrant, b: &Entrant) -> (Ordering, Option<Tie>) {
    let sizes = || match (a.attached, b.attached) {
        (None, None) => a.slots.cmp(&b.slots),
        _ => Ordering::Equal,
    };
    let times = || match (a.attached, b.attached) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    let rules: [(Option<Tie>, &dyn Fn() -> Ordering); 5] = [
        (None, &|| a.config.priority.cmp(&b.config.priority)),
        (Some(Tie::Name), &|| a.name.as_bytes().cmp(b.name.as_bytes())),
        (Some(Tie::Attached), &|| a.attached.is_none().cmp(&b.attached.is_none())),
        (Some(Tie::Size), &sizes),
        (Some(Tie::Time), &times),
    ];
    let decided = rules.into_iter().map(|(tie, rule)| (rule(), tie)).find(|(order, _)| order.is_ne());
    decided.unwrap_or((Ordering::Equal, Some(Tie::Given)))
}

fn reason_in(graph: &Graph, node: Node) -> Reason {
    if node == 0 {
        return Reason::Entry;
    }
    let leads: Vec<_> =
        graph.nodes().iter().enumerate().flat_map(|(from, edges)| leads(from, edges, node)).collect();
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
        assert_eq!(plan.graph.after(0, Verdict::Drop as u32), Next::Program(1));
        assert_eq!(plan.graph.after(0, Verdict::Pass as u32), Next::End(Verdict::Pass));
        assert_eq!(plan.graph.after(1, Verdict::Drop as u32), Next::End(Verdict::Pass));
        assert_eq!(plan.graph.after(1, Verdict::Redirect as u32), Next::End(Verdict::Redirect));
        let verdicts = [Verdict::Drop, Verdict::Tx].map(|verdict| Warning::LastPasses { node: 1, verdict });
        assert_eq!(plan.warnings, verdicts);
    }

    #[test]
    fn a_sequence_ends_with_the_verdict_of_the_last() {
        let actions = [Actions::from_iter([Verdict::Drop]), Actions::from_iter([Verdict::Drop])];
        let plan = Plan::in_sequence(&actions).unwrap();
        assert_eq!(plan.graph.after(0, Verdict::Drop as u32), Next::Program(1));
        assert_eq!(plan.graph.after(1, Verdict::Drop as u32), Next::End(Verdict::Drop));
        assert_eq!(plan.warnings, []);
    }

    #[test]
    fn programs_behind_one_that_never_goes_on_are_named() {
        let plan = Plan::in_sequence(&[Actions::NONE, Actions::PASS]).unwrap();
        assert_eq!(plan.warnings, [Warning::Unreached { node: 1 }]);
    }

    #[test]
    fn packets_enter_where_it_is_said() {
        let to = |index| Edges::NONE.with_wildcard(Next::Program(index));
        let plan = Plan::by_edges(2, &[to(1), Edges::NONE, to(0), to(0)]).unwrap();
        assert_eq!(plan.order, [2, 0, 1, 3]);
        assert_eq!(plan.graph.after(0, 9), Next::Program(1));
        assert_eq!(plan.graph.after(1, 9), Next::Program(2));
        assert_eq!(plan.reasons[0], Reason::Entry);
        assert_eq!(
            plan.reasons[1],
            Reason::Led(vec![Lead { from: 0, after: None }, Lead { from: 3, after: None }])
        );
        assert_eq!(plan.warnings, [Warning::Unreached { node: 3 }]);
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
