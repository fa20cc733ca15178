//! Maps and programs that frames and maps refer to by number: redirect maps, and the programs of their entries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_engine::Target;
use paceline_maps::{Map, entry_program_changes};

/// Maps by number. Who uses them keeps them.
#[derive(Default)]
pub(super) struct KnownMaps {
    known: Mutex<HashMap<u32, Weak<Map>>>,
    changes: AtomicU64,
}

impl KnownMaps {
    pub(super) fn add<'a>(&self, more: impl IntoIterator<Item = &'a Arc<Map>>) {
        let mut known = self.lock();
        known.retain(|_, map| map.strong_count() > 0);
        known.extend(more.into_iter().map(|map| (map.id(), Arc::downgrade(map))));
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn get(&self, number: u32) -> Option<Arc<Map>> {
        self.lock().get(&number)?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Weak<Map>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Things that a worker has come upon.
pub(super) struct Cache<T> {
    things: Vec<(u32, T)>,
    changes: u64,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { things: Vec::new(), changes: 0 }
    }
}

impl<T> Cache<T> {
    /// Lets all go that others may not have any more, if anything changed.
    fn follow(&mut self, changes: u64) {
        if self.changes != changes {
            self.changes = changes;
            self.things.clear();
        }
    }

    fn get_or(&mut self, number: u32, find: impl FnOnce() -> Option<T>) -> Option<&T> {
        let index = match self.things.iter().position(|(own, _)| *own == number) {
            Some(index) => index,
            None => {
                self.things.push((number, find()?));
                self.things.len() - 1
            }
        };
        self.things.get(index).map(|(_, thing)| thing)
    }
}

impl Cache<Arc<Map>> {
    pub(super) fn follow_maps(&mut self, all: &KnownMaps) {
        self.follow(all.changes.load(Ordering::Acquire));
    }

    pub(super) fn get(&mut self, number: u32, all: &KnownMaps) -> Option<&Arc<Map>> {
        self.get_or(number, || all.get(number))
    }
}

impl Cache<Target> {
    /// The program that an entry names. Its maps become known before a packet comes through it.
    pub(super) fn program(&mut self, number: u32, maps: &KnownMaps) -> Option<&Target> {
        self.follow(entry_program_changes());
        self.get_or(number, || {
            let program = Target::of_entry(number)?;
            maps.add(&program.maps());
            Some(program)
        })
    }
}
