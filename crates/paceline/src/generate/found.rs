//! What is found for the goals of a program.

use std::collections::{BTreeMap, BTreeSet};

use paceline_analysis::symbolic::{Bounds, Edge, Goal, Input, Meets, Place, Side};
use paceline_frame::Verdict;
use paceline_spec::Errno;

use super::left::{Event, Handover, Target};
use crate::load::{ProgramError, SetupError, VerifierError};

/// The reason why nothing is generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The program is not safe, or needs what is not supported.
    #[error(transparent)]
    Refused(Box<VerifierError>),
    /// The maps cannot be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The program cannot be run.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// An input that was run, with what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The input.
    pub input: Input,
    /// Fate of the packet.
    pub verdict: Verdict,
    /// The return value.
    pub returned: u32,
    /// The packet's bytes afterwards.
    pub bytes: Vec<u8>,
    /// Its metadata.
    pub metadata: Vec<u8>,
    /// Where it was redirected to.
    pub redirect: Option<Target>,
    /// The sides of branches that the run took.
    pub sides: BTreeSet<Side>,
    /// What its map operations met, by slot.
    pub operations: BTreeSet<(usize, Meets)>,
    /// The boundaries of comparisons that it came to, by slot.
    pub edges: BTreeSet<(usize, Edge)>,
    /// Slot of the program's last instruction.
    pub last: usize,
    /// The elements of maps that the run changed, by map and key: their values afterwards, of all CPUs where each has one. `None`: removed.
    pub changes: BTreeMap<(usize, Vec<u8>), Option<Vec<u8>>>,
    /// The events that it sent.
    pub events: Vec<Event>,
    /// The traces that it wrote.
    pub traces: Vec<u8>,
    /// The first tail call that led to another program.
    pub handover: Option<Handover>,
}

impl Confirmed {
    /// Whether the run meets a goal that is no path.
    #[must_use]
    pub fn meets(&self, goal: Goal) -> bool {
        match goal {
            Goal::Side(side) => self.sides.contains(&side),
            Goal::Return { slot, verdict } => self.last == slot && self.verdict == verdict,
            Goal::Operation { slot, meets } => self.operations.contains(&(slot, meets)),
            Goal::Path { .. } => false,
        }
    }

    /// Order in which inputs are preferred: with few elements, and short.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.input.maps.values().map(Vec::len).sum(), self.input.packet.len())
    }
}

/// What distinguishes a further input from the first one of its goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Bytes that do not decide which sides are taken differ from each other, and from zero.
    Filled,
    /// The same with other such bytes: all bits are inverted.
    Inverted,
    /// It is at the boundary of a comparison.
    At(Edge),
    /// It takes a whole path that no other input takes.
    Whole,
    /// It takes a whole path, and is at the boundary of the comparison of this jump.
    AtJump(usize, Edge),
}

/// A further input.
#[derive(Clone, Debug)]
pub struct Further {
    /// The goal that it meets too.
    pub goal: Goal,
    /// What distinguishes it.
    pub variant: Variant,
    /// The input.
    pub confirmed: Confirmed,
}

/// An input that does not do what it was made for: a fault of this library.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The goal that it was to meet.
    pub goal: Goal,
    /// The input.
    pub input: Input,
    /// What happened instead.
    pub how: Missed,
}

/// What an input did instead of meeting its goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missed {
    /// It went another way.
    #[error("the run took another way")]
    OtherWay,
    /// The run ended in a fault.
    #[error("the run ended: {0}")]
    Fault(String),
    /// An element could not be put into its map.
    #[error("map {map} refused an element: {errno}")]
    Element {
        /// The map's name.
        map: String,
        /// The map's answer.
        errno: Errno,
    },
    /// The packet is longer than a frame.
    #[error("the packet is too long")]
    TooLong,
}

/// What is known of the goals of a program.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// Inputs by the goals that they were made for.
    pub reached: BTreeMap<Goal, Confirmed>,
    /// Further inputs, which tell more wrong programs from the right one.
    pub more: Vec<Further>,
    /// Inputs that no other bytes were looked for, because the time was over.
    pub unvaried: usize,
    /// Goals that no input meets; whether the verifier's walk tells it.
    pub unreachable: BTreeMap<Goal, bool>,
    /// Goals of which nothing is known, and why.
    pub given_up: BTreeMap<Goal, Place>,
    /// If paths are looked for: places at which some were given up. Without any, and with fewer paths than were looked for, there are no others.
    pub left: Vec<Place>,
    /// Inputs that did not meet their goal.
    pub failures: Vec<Failure>,
    /// Paths that were followed.
    pub paths: u64,
    /// The inputs for which unreachable goals are so.
    pub bounds: Bounds,
    /// Questions to the solver, and how many of them took a search.
    pub questions: (u64, u64),
}

impl Generated {
    /// Notes that an input did not meet its goal: a fault, unless it was known that it may go another way.
    pub(super) fn miss(&mut self, goal: Goal, input: Input, how: Missed) {
        match &input.guess {
            Some(_) if self.reached.contains_key(&goal) => {}
            Some(place) => {
                self.given_up.insert(goal, place.clone());
                if matches!(goal, Goal::Path { .. }) {
                    self.left.push(place.clone());
                }
            }
            None => self.failures.push(Failure { goal, input, how }),
        }
    }

    /// The inputs that are worth keeping, with their goals: the smallest first, one for each goal that no smaller one meets, and then the further ones.
    #[must_use]
    pub fn inputs(&self) -> Vec<(Goal, Option<Variant>, &Confirmed)> {
        let mut all: Vec<_> = self.reached.iter().map(|(goal, confirmed)| (*goal, confirmed)).collect();
        all.sort_by_key(|(goal, confirmed)| (confirmed.size(), *goal));
        let mut kept: Vec<(Goal, Option<Variant>, &Confirmed)> = Vec::new();
        for (goal, confirmed) in all {
            if !kept.iter().any(|(_, _, other)| other.meets(goal)) {
                kept.push((goal, None, confirmed));
            }
        }
        kept.extend(self.more.iter().map(|more| (more.goal, Some(more.variant), &more.confirmed)));
        kept
    }
}
