//! What frames and maps name by number: the maps that packets are redirected by, and the programs of their entries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_maps::Map;
use paceline_vm::Target;

/// How something is known.
pub(super) trait Handle {
    /// What keeps it.
    type Kept;

    /// `None` if it has gone.
    fn keep(&self) -> Option<Self::Kept>;
}

impl Handle for Weak<Map> {
    type Kept = Arc<Map>;

    fn keep(&self) -> Option<Arc<Map>> {
        self.upgrade()
    }
}

impl Handle for Target {
    type Kept = Self;

    fn keep(&self) -> Option<Self> {
        Some(self.clone())
    }
}

/// Things by number.
pub(super) struct Known<H> {
    known: Mutex<HashMap<u32, H>>,
    changes: AtomicU64,
}

impl<H> Default for Known<H> {
    fn default() -> Self {
        Self { known: Mutex::default(), changes: AtomicU64::new(0) }
    }
}

impl<H: Handle> Known<H> {
    pub(super) fn add(&self, more: impl IntoIterator<Item = (u32, H)>) {
        let mut known = self.lock();
        known.retain(|_, handle| handle.keep().is_some());
        known.extend(more);
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn get(&self, number: u32) -> Option<H::Kept> {
        self.lock().get(&number).and_then(Handle::keep)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, H>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that a worker has come upon.
pub(super) struct Seen<H: Handle> {
    things: Vec<(u32, H::Kept)>,
    changes: u64,
}

impl<H: Handle> Default for Seen<H> {
    fn default() -> Self {
        Self { things: Vec::new(), changes: 0 }
    }
}

impl<H: Handle> Seen<H> {
    /// Lets things go that the pipeline may not have any more.
    pub(super) fn follow(&mut self, all: &Known<H>) {
        let changes = all.changes.load(Ordering::Acquire);
        if self.changes != changes {
            self.changes = changes;
            self.things.clear();
        }
    }

    pub(super) fn get(&mut self, number: u32, all: &Known<H>) -> Option<&H::Kept> {
        let index = match self.things.iter().position(|(own, _)| *own == number) {
            Some(index) => index,
            None => {
                self.things.push((number, all.get(number)?));
                self.things.len() - 1
            }
        };
        self.things.get(index).map(|(_, thing)| thing)
    }
}
