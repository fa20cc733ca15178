//! What became of the goals of an exploration.

use crate::solver::smt_lib;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::flow::{FAR, Flow};
use crate::symbolic::give_up::{GiveUp, Place};
use crate::symbolic::goal::{Fate, Goal, Goals};
use crate::symbolic::options::Exploration;

impl Explorer<'_> {
    /// What is not reached is unreachable, unless a path was given up from which it may be reached.
    pub(crate) fn finish(mut self) -> Exploration {
        let open = std::mem::take(&mut self.open);
        let bounds = self.bounds();
        let from_entry = |flow: &mut Flow, goal: &Goal| {
            flow.aim(std::iter::once(goal.slot()));
            flow.distance(0) != FAR
        };
        for goal in open {
            let fate = if !from_entry(&mut self.flow, &goal) {
                Fate::GivenUp(Place { slot: goal.slot(), why: GiveUp::Timer })
            } else if let Some((_, place)) = self.misses.remove(&goal) {
                Fate::GivenUp(place)
            } else {
                let near = self
                    .left
                    .iter()
                    .map(|(position, place)| (self.flow.from(position.iter().copied()), place))
                    .filter(|(distance, _)| *distance != FAR)
                    .min_by_key(|(distance, _)| *distance);
                match near {
                    Some((_, place)) => Fate::GivenUp(place.clone()),
                    None => Fate::Unreachable { by_verifier: false },
                }
            };
            self.fates.insert(goal, fate);
        }
        let mut left = Vec::new();
        if matches!(self.options.goals, Goals::Paths(_)) {
            left.extend(self.left.into_iter().map(|(_, place)| place));
            left.sort_by_key(|place| place.slot);
            left.dedup();
        }
        Exploration {
            goals: self.fates,
            varied: self.varied,
            boundaries: self.boundaries.into_values().collect(),
            left,
            paths: self.paths,
            bounds,
            questions: self.solver.counts(),
            refutations: self
                .solver
                .refuted()
                .take(self.options.refutations)
                .map(|conditions| smt_lib(&self.terms, conditions))
                .collect(),
        }
    }
}
