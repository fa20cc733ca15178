//! Paths of two programs that are compared, by the order in which they are followed.

use std::collections::BTreeMap;

use crate::symbolic::order::{Key, Order};
use crate::symbolic::state::State;

/// When a path's turn comes: the programs that run second first, those that began last before others, each in its order.
pub(crate) type Turn = (u64, Key);

pub(crate) fn turn(order: &Order, state: &State) -> Turn {
    let program = state.first.as_ref().map_or(u64::MAX, |first| u64::MAX - 1 - first.number);
    (program, order.key(state))
}

/// Paths that wait until others at the same place have come, where two programs are compared.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    groups: BTreeMap<Turn, Vec<State>>,
    count: usize,
}

impl Waiting {
    pub(crate) fn put(&mut self, turn: Turn, state: State) {
        self.count += 1;
        self.groups.entry(turn).or_default().push(state);
    }

    /// Whether some path's turn comes before another one, or at the same time.
    pub(crate) fn has_before(&self, turn: &Turn) -> bool {
        self.groups.first_key_value().is_some_and(|(first, _)| first <= turn)
    }

    pub(crate) fn first(&mut self) -> Option<Vec<State>> {
        let (_, group) = self.groups.pop_first()?;
        self.count -= group.len();
        Some(group)
    }

    /// Ends of the first program.
    pub(crate) fn ended(&mut self) -> Option<Vec<State>> {
        let last = self.groups.last_entry()?;
        let group = last.get().iter().all(|state| state.has_ended).then(|| last.remove())?;
        self.count -= group.len();
        Some(group)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn take(&mut self) -> Vec<State> {
        self.count = 0;
        std::mem::take(&mut self.groups).into_values().flatten().collect()
    }
}
