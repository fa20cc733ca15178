//! What is looked for: sides of branches.

use crate::give_up::Place;
use crate::input::Input;

/// A side of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether the jump is taken.
    pub taken: bool,
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
