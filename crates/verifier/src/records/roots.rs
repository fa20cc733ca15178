//! Entry points: the program, called global functions, timer callbacks.

use std::collections::HashSet;

use crate::domain::state::MapRef;

/// An entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// The program.
    Main,
    /// A global function, by its index: verified for all arguments that its types allow.
    Global(usize),
    /// The callback of a timer in a value of this map.
    Timer { function: usize, map: MapRef },
}

impl Root {
    /// The function's index.
    pub(crate) fn function(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Global(function) | Self::Timer { function, .. } => function,
        }
    }
}

/// The entry points found so far, in the order of their exploration.
pub(crate) struct Roots {
    all: Vec<Root>,
    known: HashSet<Root>,
    /// Number of those that were taken.
    taken: usize,
    current: Root,
}

impl Roots {
    pub(crate) fn new() -> Self {
        Self { all: vec![Root::Main], known: HashSet::from([Root::Main]), taken: 0, current: Root::Main }
    }

    /// Adds an entry point, unless it is known.
    pub(crate) fn add(&mut self, root: Root) {
        if self.known.insert(root) {
            self.all.push(root);
        }
    }

    /// Goes on to the next entry point.
    pub(crate) fn take(&mut self) -> Option<Root> {
        self.current = *self.all.get(self.taken)?;
        self.taken += 1;
        Some(self.current)
    }

    /// Where the current path began.
    pub(crate) fn current(&self) -> Root {
        self.current
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Root] {
        &self.all
    }
}
