//! What an exploration is given, and what it tells.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::symbolic::bounds::Bounds;
use crate::symbolic::give_up::Place;
use crate::symbolic::goal::{Boundary, Fate, Goal, Goals, Input};

/// Limits of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for all of it.
    pub time: Duration,
    /// Most conflicts of one question to the solver, before it waits until all others are answered. Then it gets more, until the time is over.
    pub conflicts: u64,
    /// What is looked for.
    pub goals: Goals,
    /// Whether inputs at the boundaries of comparisons are made as well, as far as the followed paths have some, if goals are sides or paths.
    pub boundaries: bool,
    /// Most open paths that are kept.
    pub paths: usize,
    /// Most paths that are followed.
    pub followed: u64,
    /// Most terms that are kept, of some 150 bytes each.
    pub terms: usize,
    /// Most times that a path takes one side of a branch in one function call.
    pub rounds: u32,
    /// Most instructions of a path.
    pub instructions: u64,
    /// Most refutations that are kept for others to look at.
    pub refutations: usize,
    /// Length of packets in bytes: the least and the greatest.
    pub length: (u16, u16),
    /// The first random numbers that programs get with a seed: so many.
    pub random: fn(seed: u64, count: usize) -> Vec<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            conflicts: 20_000,
            goals: Goals::Sides,
            boundaries: false,
            paths: 20_000,
            followed: u64::MAX,
            terms: 6_000_000,
            rounds: 512,
            instructions: 200_000,
            refutations: 0,
            length: (1, 3520),
            random: |_, count| vec![0; count],
        }
    }
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Each goal; of paths, those that have an input.
    pub goals: BTreeMap<Goal, Fate>,
    /// If boundaries are looked for: further inputs for goals that have one, in which the bytes that decide differ from each other and from zero as far as they can.
    pub varied: BTreeMap<Goal, Input>,
    /// Inputs at the boundaries of comparisons, in the order of their jumps.
    pub boundaries: Vec<Boundary>,
    /// If paths are looked for: places at which some were given up, in the order of their slots. Without any, and with fewer paths than were looked for,
    /// there are no others.
    pub left: Vec<Place>,
    /// Paths that were followed to their end, or to where they were given up.
    pub paths: u64,
    /// The inputs for which unreachable goals are so.
    pub bounds: Bounds,
    /// Questions to the solver, and how many of them took a search.
    pub questions: (u64, u64),
    /// Conditions that the solver says cannot hold together, each as a script that asserts them ([`smt_lib`](crate::solver::smt_lib)).
    pub refutations: Vec<String>,
}

/// How far an exploration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Goals that have an input; where two programs are compared, inputs on which they differ; of a property, inputs with which it does not hold.
    pub reached: usize,
    /// Goals that are looked for still; of paths, those that would be more than were looked for; where all paths are followed, those that wait.
    pub open: usize,
    /// Paths that were followed.
    pub paths: u64,
}
