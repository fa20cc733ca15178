//! Inputs for each side of each branch of a program, or for other goals, each of them run before it is called good.
//!
//! ```
//! use paceline::Object;
//! use paceline::generate::{Options, generate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vlan.o");
//! let object = Object::open(path)?;
//! let generated = generate(&object, &object.programs()[0], &Options::default())?;
//! assert!(generated.failures.is_empty());
//! for (goal, confirmed) in &generated.reached {
//!     println!("{}: {} bytes, {}", goal.slot(), confirmed.input.packet.len(), confirmed.verdict.name());
//! }
//! # Ok(())
//! # }
//! ```

mod confirm;
mod differences;
mod left;
mod network;
mod paths;
mod receive;
mod run;
mod vary;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use paceline_analysis::symbolic::{Boundary, Decided, Fate, explore};
use paceline_engine::Host;
use paceline_frame::Verdict;
use paceline_isa::Insn;
use paceline_spec::{Errno, ProgramSpec};

pub use paceline_analysis::symbolic::{
    Assumption, Bounds, Call, CallResult, Edge, Element, GiveUp, Goal, Goals, Input, Meets, Options, Place,
    Progress, Route, RouteOutcome, Side,
};

use super::error::{NoProgram, SetupError};
use super::object::Object;
use super::verify::Refused;
pub(crate) use confirm::Confirmer;
pub use differences::{CompareError, Difference, Differences, differences, differences_of_paths};
pub use left::{Event, Handover, Target};
pub use network::{network, network_text};
pub use run::{Ran, burst, fill, host, outcome, run, run_in};
use vary::Pattern;

/// The reason why nothing is generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The program is not safe, or needs what is not supported.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// The maps cannot be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The program cannot be run.
    #[error(transparent)]
    NoProgram(#[from] NoProgram),
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
    fn size(&self) -> (usize, usize) {
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
    fn miss(&mut self, goal: Goal, input: Input, how: Missed) {
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

/// Looks for an input for each goal of a program, by default each side of each conditional jump, and runs each on the plain interpreter.
///
/// # Errors
/// The program is refused, or cannot be loaded.
pub fn generate(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
) -> Result<Generated, GenerateError> {
    generate_watched(object, program, options, &mut |_| {})
}

/// The same; `tell` is called after each path.
///
/// # Errors
/// The program is refused, or cannot be loaded.
pub fn generate_watched(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
    tell: &mut dyn FnMut(Progress),
) -> Result<Generated, GenerateError> {
    let until = Instant::now().checked_add(options.time);
    let verified = object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))?;
    let mut options = Options { random: Host::randoms_of, ..*options };
    if options.goals == Goals::Sides && !verified.code().iter().any(|(_, insn)| is_branch(insn)) {
        // A program without branches has one path.
        options.goals = Goals::Paths(1);
    }
    // Boundaries of paths are those of the inputs that are added for sides.
    let of_paths = matches!(options.goals, Goals::Paths(_));
    let explored = Options { boundaries: options.boundaries && !of_paths, ..options };
    let exploration = explore(&verified, object.maps(), &explored, tell);
    let mut generated = Generated {
        paths: exploration.paths,
        questions: exploration.questions,
        left: exploration.left,
        bounds: exploration.bounds,
        ..Generated::default()
    };
    let confirmer = Confirmer::new(object, &program.name);
    for (goal, fate) in exploration.goals {
        match fate {
            Fate::Reached(input) => match confirmer.confirm(&input, goal)? {
                Ok(confirmed) => drop(generated.reached.insert(goal, confirmed)),
                Err(how) => generated.miss(goal, *input, how),
            },
            Fate::Unreachable { by_verifier } => drop(generated.unreachable.insert(goal, by_verifier)),
            Fate::GivenUp(place) => drop(generated.given_up.insert(goal, place)),
        }
    }
    if options.boundaries {
        further(&confirmer, &mut generated, (exploration.varied, exploration.boundaries), until)?;
        if options.goals == Goals::Sides {
            paths::add(&confirmer, &mut generated, (&verified, object.maps()), (&options, until))?;
        }
    }
    Ok(generated)
}

const fn is_branch(insn: &Insn) -> bool {
    matches!(insn, Insn::JumpIf { .. })
}

/// Adds further inputs: for each input that is kept one with bytes that differ, and one for each boundary that none of them comes to.
/// Bytes are not looked for when the time is over.
fn further(
    confirmer: &Confirmer<'_>,
    generated: &mut Generated,
    (varied, boundaries): (BTreeMap<Goal, Input>, Vec<Boundary>),
    until: Option<Instant>,
) -> Result<(), GenerateError> {
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    let kept: Vec<(Goal, Confirmed)> =
        generated.inputs().into_iter().map(|(goal, _, confirmed)| (goal, confirmed.clone())).collect();
    let mut edges: BTreeSet<(usize, Edge)> = BTreeSet::new();
    for (goal, confirmed) in kept {
        edges.extend(&confirmed.edges);
        if is_over() {
            generated.unvaried += 1;
            continue;
        }
        let other = match varied.get(&goal) {
            Some(input) => confirmer.confirm(input, goal)?.ok(),
            None => None,
        };
        for (variant, pattern) in [(Variant::Filled, Pattern::Plain), (Variant::Inverted, Pattern::Inverted)]
        {
            let base = other.as_ref().filter(|_| variant == Variant::Filled);
            let filled = confirmer.filled(base.unwrap_or(&confirmed), &Decided::default(), None, pattern)?;
            if let Some(filled) = filled.or_else(|| base.cloned()) {
                edges.extend(&filled.edges);
                generated.more.push(Further { goal, variant, confirmed: filled });
            }
        }
    }
    for Boundary { side, edge, input, decided, .. } in boundaries {
        let goal = Goal::Side(side);
        let is_known = edges.contains(&(side.slot, edge));
        match confirmer.confirm(&input, goal)? {
            Ok(_) if is_known && edge != Edge::Equal => {}
            Ok(confirmed) => {
                let filled = match is_over() {
                    true => {
                        generated.unvaried += 1;
                        None
                    }
                    false => {
                        confirmer.filled(&confirmed, &decided, Some((side.slot, edge)), Pattern::Plain)?
                    }
                };
                let confirmed = filled.unwrap_or(confirmed);
                let longer = confirmer.longer(&confirmed, Some((side.slot, edge)))?;
                let confirmed = longer.unwrap_or(confirmed);
                // Where others come to the boundary, this one has other bits in the bytes that are compared, which a mask removes.
                let is_changed = |at: &usize| confirmed.input.packet.get(*at) != input.packet.get(*at);
                if !is_known || decided.packet.iter().any(is_changed) {
                    edges.extend(&confirmed.edges);
                    generated.more.push(Further { goal, variant: Variant::At(edge), confirmed });
                }
            }
            Err(how) => generated.miss(goal, input, how),
        }
    }
    Ok(())
}
