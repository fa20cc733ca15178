//! The maps that packets are redirected by.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_maps::Map;

/// Maps by number, as programs leave them in frames.
#[derive(Default)]
pub(super) struct RedirectMaps {
    known: Mutex<HashMap<u32, Weak<Map>>>,
    changes: AtomicU64,
}

impl RedirectMaps {
    pub(super) fn add(&self, maps: &[Arc<Map>]) {
        let mut known = self.lock();
        known.retain(|_, map| map.strong_count() > 0);
        known.extend(maps.iter().map(|map| (map.id(), Arc::downgrade(map))));
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn get(&self, id: u32) -> Option<Arc<Map>> {
        self.lock().get(&id).and_then(Weak::upgrade)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Weak<Map>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that a worker has come upon.
#[derive(Default)]
pub(super) struct Seen {
    maps: Vec<Arc<Map>>,
    changes: u64,
}

impl Seen {
    /// Lets maps go that the pipeline may not have any more.
    pub(super) fn follow(&mut self, all: &RedirectMaps) {
        let changes = all.changes.load(Ordering::Acquire);
        if self.changes != changes {
            self.changes = changes;
            self.maps.clear();
        }
    }

    pub(super) fn get(&mut self, id: u32, all: &RedirectMaps) -> Option<&Map> {
        let index = match self.maps.iter().position(|map| map.id() == id) {
            Some(index) => index,
            None => {
                self.maps.push(all.get(id)?);
                self.maps.len() - 1
            }
        };
        self.maps.get(index).map(|map| &**map)
    }
}
