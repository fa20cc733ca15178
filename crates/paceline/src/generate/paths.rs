//! Inputs of whole paths: what a mistake changes may show only if other branches are taken as well.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use paceline_analysis::symbolic::{Edge, Fate, Goals, Meets, Options, Side, explore};
use paceline_frame::Verdict;
use paceline_spec::MapSpec;
use paceline_verifier::Verified;

use super::confirm::Confirmer;
use super::found::{Confirmed, Failure, Further, GenerateError, Generated, Variant};
use super::vary::Pattern;

/// Paths that are looked for, and paths that are followed for them.
const PATHS: u32 = 128;
const FOLLOWED: u64 = 300;

/// Most inputs that are added.
const INPUTS: usize = 256;

/// Where an input is at the boundary of a comparison: slot and edge.
type At = (usize, Edge);

/// How a run ends, as far as further inputs are told from others by it: verdict, code, tail call, and the maps that it changes.
type End = (Verdict, u32, Option<u32>, BTreeSet<usize>);

/// The sides that a run takes, what its map operations meet, and how it ends.
type Way = (BTreeSet<Side>, BTreeSet<(usize, Meets)>, End);

/// What the inputs that are kept do.
#[derive(Default)]
struct Known {
    ways: BTreeSet<Way>,
    /// The boundaries that they come to, and how they end.
    edges: BTreeSet<(At, End)>,
}

impl Known {
    fn add(&mut self, confirmed: &Confirmed) {
        let end = end(confirmed);
        self.edges.extend(confirmed.edges.iter().map(|edge| (*edge, end.clone())));
        self.ways.insert((confirmed.sides.clone(), confirmed.operations.clone(), end));
    }

    /// Whether an input does something else, at a boundary or on the whole.
    fn is_new(&self, confirmed: &Confirmed, at: Option<At>) -> bool {
        let end = end(confirmed);
        match at {
            Some(at) => !self.edges.contains(&(at, end)),
            None => !self.ways.contains(&(confirmed.sides.clone(), confirmed.operations.clone(), end)),
        }
    }
}

fn end(confirmed: &Confirmed) -> End {
    let changed = confirmed.changes.keys().map(|(map, _)| *map).collect();
    let call = confirmed.handover.as_ref().map(|call| call.index);
    (confirmed.verdict, confirmed.returned, call, changed)
}

/// Adds inputs of paths that no other input takes, and such at the boundaries of comparisons that end in another way than those that are there.
pub(super) fn add(
    confirmer: &Confirmer<'_>,
    generated: &mut Generated,
    (verified, maps): (&Verified, &[MapSpec]),
    (options, until): (&Options, Option<Instant>),
) -> Result<(), GenerateError> {
    let Some(left) = time_left(until) else { return Ok(()) };
    let options = Options { goals: Goals::Paths(PATHS), followed: FOLLOWED, time: left / 8, ..*options };
    let mut exploration = explore(verified, maps, &options, &mut |_| {});
    let varied = std::mem::take(&mut exploration.varied);
    let mut known = Known::default();
    generated.inputs().iter().for_each(|(_, _, confirmed)| known.add(confirmed));
    let paths = exploration.goals.into_iter().filter_map(|(goal, fate)| match fate {
        Fate::Reached(input) => {
            Some((goal, Variant::Whole, varied.get(&goal).cloned().unwrap_or(*input), None))
        }
        _ => None,
    });
    let boundaries = exploration.boundaries.into_iter().filter_map(|boundary| {
        let edge = (boundary.side.slot, boundary.edge);
        let variant = Variant::AtJump(edge.0, edge.1);
        Some((boundary.path?, variant, boundary.input, Some((edge, boundary.decided))))
    });
    let mut room = INPUTS;
    for (goal, variant, input, boundary) in paths.chain(boundaries) {
        let edge = boundary.as_ref().map(|(edge, _)| *edge);
        let confirmed = match confirmer.confirm(&input, goal)? {
            Ok(confirmed) => confirmed,
            Err(how) => {
                if input.guess.is_none() {
                    generated.failures.push(Failure { goal, input, how });
                }
                continue;
            }
        };
        if room == 0 || !known.is_new(&confirmed, edge) {
            continue;
        }
        room -= 1;
        let decided = boundary.map(|(_, decided)| decided).unwrap_or_default();
        let filled = match time_left(until) {
            Some(_) => confirmer.filled(&confirmed, &decided, edge, Pattern::Plain)?,
            None => {
                generated.unvaried += 1;
                None
            }
        };
        let mut confirmed = filled.unwrap_or(confirmed);
        if let Some(longer) = confirmer.longer(&confirmed, edge)? {
            confirmed = longer;
        }
        known.add(&confirmed);
        generated.more.push(Further { goal, variant, confirmed });
    }
    Ok(())
}

/// The time that is left, if there is some.
fn time_left(until: Option<Instant>) -> Option<Duration> {
    match until {
        Some(until) => until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()),
        None => Some(Duration::MAX),
    }
}
