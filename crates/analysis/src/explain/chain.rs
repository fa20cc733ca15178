//! Explanations of chains: program after program.

use paceline_engine::{Arrival, ArrivalError, Host, Outcome};
use paceline_frame::Verdict;
use paceline_spec::graph::{Graph, MAX_RUNS, Next, Node};

use crate::explain::explainer::Explainer;
use crate::explain::journal::Journal;
use crate::explain::line_counts::LineCounts;
use crate::explain::trace::Explanation;

/// The programs that ran, with a result of each, and what follows.
type Steps<T> = Vec<(Node, T, Next)>;

/// Explains what a chain of programs does with packets.
pub struct ChainExplainer {
    explainers: Vec<Explainer>,
    graph: Graph,
    /// Whether the outcome is that of the only program.
    is_program: bool,
}

impl std::fmt::Debug for ChainExplainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainExplainer").finish_non_exhaustive()
    }
}

/// Explanation of a packet's way through a chain.
#[derive(Clone, Debug)]
pub struct ChainExplanation {
    /// The programs that ran, in order, with what each did and what follows.
    pub steps: Vec<(Node, Explanation, Next)>,
    /// Outcome of the packet.
    pub outcome: Outcome,
}

impl ChainExplanation {
    /// The sentence of the program that ended the chain.
    #[must_use]
    pub fn sentence(&self) -> String {
        self.steps.last().map_or_else(String::new, |(_, explanation, _)| explanation.sentence())
    }
}

impl ChainExplanation {
    /// What the sentences of packets with the same reason have in common: the place, and the names without their values.
    #[must_use]
    pub fn summary(&self) -> String {
        self.steps.last().map_or_else(String::new, |(_, explanation, _)| explanation.summary())
    }
}

impl ChainExplainer {
    /// Has explanations contain all causes, and not only the nearest one: they take longer.
    pub fn want_all_causes(&mut self, wanted: bool) {
        self.explainers.iter_mut().for_each(|explainer| explainer.want_all_causes(wanted));
    }

    /// A chain, with an explainer for each node.
    ///
    /// # Panics
    /// If there are fewer explainers than nodes.
    #[must_use]
    pub fn new(explainers: Vec<Explainer>, graph: Graph) -> Self {
        assert!(graph.nodes().len() <= explainers.len(), "an explainer for every node");
        Self { explainers, graph, is_program: false }
    }

    /// A program as a chain of one, whose outcomes are the program's.
    #[must_use]
    pub fn of_program(explainer: Explainer) -> Self {
        Self { explainers: vec![explainer], graph: Graph::one(), is_program: true }
    }

    /// The explainers, by node.
    #[must_use]
    pub fn explainers(&self) -> &[Explainer] {
        &self.explainers
    }

    /// Runs the chain over a packet.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn run(&mut self, packet: &Arrival<'_>, host: &mut Host) -> Result<Outcome, ArrivalError> {
        self.walk(packet, host, |explainer, packet, host| explainer.run(packet, host), Outcome::clone)
            .map(|(outcome, _)| outcome)
    }

    /// Runs the chain over a packet, and says of each program why it did what it did.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn explain(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
    ) -> Result<ChainExplanation, ArrivalError> {
        let explain = |explainer: &mut Explainer, packet: &Arrival<'_>, host: &mut Host| {
            explainer.explain(packet, host)
        };
        let (outcome, steps) = self.walk(packet, host, explain, |explanation| explanation.outcome.clone())?;
        Ok(ChainExplanation { steps, outcome })
    }

    /// Number of instructions that a packet takes, of all programs that run; maps and host are left as they were.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn count(&mut self, packet: &Arrival<'_>, host: &mut Host) -> Result<u64, ArrivalError> {
        let count =
            |explainer: &mut Explainer, packet: &Arrival<'_>, host: &mut Host| explainer.count(packet, host);
        let (_, steps) = self.walk(packet, host, count, |(outcome, _)| outcome.clone())?;
        Ok(steps.iter().map(|(_, (_, instructions), _)| instructions).sum())
    }

    /// Adds the instructions that a packet takes, of all programs that run, to counts by line; maps and host are left as they were.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn count_lines(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        counts: &mut LineCounts,
    ) -> Result<(), ArrivalError> {
        let count = |explainer: &mut Explainer, packet: &Arrival<'_>, host: &mut Host| {
            explainer.count_lines(packet, host, counts)
        };
        self.walk(packet, host, count, Clone::clone).map(drop)
    }

    /// Explains what the chain would do with a packet, and leaves maps and host as they were.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn rehearse(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
    ) -> Result<ChainExplanation, ArrivalError> {
        let mut journal = Journal::default();
        let explained = host.rehearse(|host| {
            let explain = |explainer: &mut Explainer, packet: &Arrival<'_>, host: &mut Host| {
                explainer.explain_with(packet, host, |observed| journal.note(observed))
            };
            self.walk(packet, host, explain, |explanation| explanation.outcome.clone())
        });
        journal.undo();
        explained.map(|(outcome, steps)| ChainExplanation { steps, outcome })
    }

    /// Runs program after program.
    fn walk<T>(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        mut run: impl FnMut(&mut Explainer, &Arrival<'_>, &mut Host) -> Result<T, ArrivalError>,
        outcome_of: impl Fn(&T) -> Outcome,
    ) -> Result<(Outcome, Steps<T>), ArrivalError> {
        let (mut bytes, mut metadata, mut redirect) =
            (packet.bytes.to_vec(), packet.metadata.to_vec(), packet.redirect);
        let mut steps = Vec::new();
        let mut node = Node::ENTRY;
        loop {
            let entering = Arrival { bytes: &bytes, metadata: &metadata, redirect, ..*packet };
            let explainer = &mut self.explainers[node.index()];
            let meaning = explainer.program().spec().kind.rules().meaning;
            let step = run(explainer, &entering, host)?;
            let mut outcome = outcome_of(&step);
            let next = match outcome.fault {
                Some(_) => Next::End(Verdict::Aborted),
                None => self.graph.after(node, meaning.code(outcome.returned.into())),
            };
            steps.push((node, step, next));
            let verdict = match next {
                Next::Program(_) if steps.len() == MAX_RUNS as usize => Verdict::Aborted,
                Next::Program(next) => {
                    (node, bytes, metadata, redirect) =
                        (next, outcome.bytes, outcome.metadata, outcome.stored);
                    continue;
                }
                Next::End(_) if self.is_program => return Ok((outcome, steps)),
                Next::End(verdict) => verdict,
            };
            outcome.verdict = verdict;
            outcome.returned = meaning.standing_for(verdict).unwrap_or(verdict as u32);
            outcome.redirect = outcome.stored.filter(|_| verdict == Verdict::Redirect);
            outcome.context = None;
            return Ok((outcome, steps));
        }
    }
}
