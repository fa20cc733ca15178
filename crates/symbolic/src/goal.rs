//! What is looked for: sides of branches, and inputs that take them.

use std::collections::BTreeMap;

use crate::give_up::Place;

/// A side of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether the jump is taken.
    pub taken: bool,
}

/// An element of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its key; an index in native order for arrays.
    pub key: Vec<u8>,
    /// Its value: of the first CPU where each has one.
    pub value: Vec<u8>,
}

/// An input of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The packet's bytes.
    pub packet: Vec<u8>,
    /// Elements that maps have before the run, by the maps' indices.
    pub maps: BTreeMap<usize, Vec<Element>>,
    /// The time in nanoseconds; 0 if it does not matter.
    pub time_ns: u64,
    /// Seed of the random numbers, if they matter.
    pub seed: Option<u64>,
    /// Index of the interface that the packet comes in on; 0 if it does not matter.
    pub ingress: u32,
    /// Queue that it comes in on.
    pub queue: u16,
    /// The sides that it takes, from the first branch to the one that it was made for.
    pub sides: Vec<Side>,
}

/// What was found out about a side.
#[derive(Clone, Debug)]
pub enum Fate {
    /// This input takes it.
    Reached(Box<Input>),
    /// No input does. `by_verifier` says that the verifier found no way to it; otherwise all ways to it were followed.
    Unreachable {
        /// Whether the verifier's walk tells it.
        by_verifier: bool,
    },
    /// It is not known.
    GivenUp(Place),
}
