//! Explanations of chains: program after program.

use paceline_frame::{PushError, Verdict};
use paceline_graph::{Graph, MAX_RUNS, Next, Node};
use paceline_vm::Host;

use crate::explainer::Explainer;
use crate::journal::Journal;
use crate::line_counts::LineCounts;
use crate::trace::{Explanation, Outcome, Packet};

/// The programs that ran, with a result of each, and what follows.
type Steps<T> = Vec<(Node, T, Next)>;

/// Explains what a chain of programs does with packets. A single program is a chain of one.
pub struct ChainExplainer {
    explainers: Vec<Explainer>,
    graph: Graph,
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

impl ChainExplainer {
    /// A chain, with an explainer for each node.
    ///
    /// # Panics
    /// If there are fewer explainers than nodes.
    #[must_use]
    pub fn new(explainers: Vec<Explainer>, graph: Graph) -> Self {
        assert!(graph.nodes().len() <= explainers.len(), "an explainer for every node");
        Self { explainers, graph }
    }

    /// The explainers, by node.
    #[must_use]
    pub fn explainers(&self) -> &[Explainer] {
        &self.explainers
    }

    /// Runs the chain over a packet.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn run(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<Outcome, PushError> {
        self.walk(packet, host, |explainer, packet, host| explainer.run(packet, host), Outcome::clone)
            .map(|(outcome, _)| outcome)
    }

    /// Runs the chain over a packet, and says of each program why it did what it did.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn explain(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<ChainExplanation, PushError> {
        let explain =
            |explainer: &mut Explainer, packet: &Packet<'_>, host: &mut Host| explainer.explain(packet, host);
        let (outcome, steps) = self.walk(packet, host, explain, |explanation| explanation.outcome.clone())?;
        Ok(ChainExplanation { steps, outcome })
    }

    /// Number of instructions that a packet takes, of all programs that run; maps and host are left as they were.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn count(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<u64, PushError> {
        let count =
            |explainer: &mut Explainer, packet: &Packet<'_>, host: &mut Host| explainer.count(packet, host);
        let (_, steps) = self.walk(packet, host, count, |(outcome, _)| outcome.clone())?;
        Ok(steps.iter().map(|(_, (_, instructions), _)| instructions).sum())
    }

    /// Adds the instructions that a packet takes, of all programs that run, to counts by line; maps and host are left as they were.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn count_lines(
        &mut self,
        packet: &Packet<'_>,
        host: &mut Host,
        counts: &mut LineCounts,
    ) -> Result<(), PushError> {
        let count = |explainer: &mut Explainer, packet: &Packet<'_>, host: &mut Host| {
            explainer.count_lines(packet, host, counts)
        };
        self.walk(packet, host, count, Clone::clone).map(drop)
    }

    /// Explains what the chain would do with a packet, and leaves maps and host as they were.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn rehearse(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<ChainExplanation, PushError> {
        let mut journal = Journal::default();
        let explained = host.rehearse(|host| {
            let explain = |explainer: &mut Explainer, packet: &Packet<'_>, host: &mut Host| {
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
        packet: &Packet<'_>,
        host: &mut Host,
        mut run: impl FnMut(&mut Explainer, &Packet<'_>, &mut Host) -> Result<T, PushError>,
        outcome_of: impl Fn(&T) -> Outcome,
    ) -> Result<(Outcome, Steps<T>), PushError> {
        let (bytes, metadata) = (packet.bytes.to_vec(), packet.metadata.to_vec());
        let mut outcome =
            Outcome { verdict: Verdict::Aborted, code: 0, redirect: None, bytes, metadata, fault: None };
        let mut steps = Vec::new();
        let mut node = Node::ENTRY;
        for _ in 0..MAX_RUNS {
            let Some(explainer) = self.explainers.get_mut(node.index()) else { break };
            let packet = Packet { bytes: &outcome.bytes, metadata: &outcome.metadata, ..*packet };
            let step = run(explainer, &packet, host)?;
            outcome = outcome_of(&step);
            let next = match outcome.fault {
                Some(_) => Next::End(Verdict::Aborted),
                None => self.graph.after(node, outcome.code),
            };
            steps.push((node, step, next));
            match next {
                Next::Program(next) => node = next,
                Next::End(verdict) => {
                    outcome.verdict = verdict;
                    outcome.redirect = outcome.redirect.filter(|_| verdict == Verdict::Redirect);
                    return Ok((outcome, steps));
                }
            }
        }
        outcome.verdict = Verdict::Aborted;
        outcome.redirect = None;
        Ok((outcome, steps))
    }
}
