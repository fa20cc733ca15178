//! Who uses maps that hold programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::map::Map;

/// Users of a map.
#[derive(Default)]
pub(crate) struct Users(AtomicUsize);

/// A user of a map that holds programs: of a program array, a device or CPU map, or one whose values have timers, which call
/// programs. When the last one goes the array's entries, the timers, and the programs of entries are removed, as the kernel does
/// when the last descriptor of the map is closed: programs hold their maps, so a map that holds programs would keep itself.
pub struct MapUser(Arc<Map>);

impl MapUser {
    /// A new user; `None` if the map holds no programs.
    #[must_use]
    pub fn new(map: &Arc<Map>) -> Option<Self> {
        if !map.holds_programs() {
            return None;
        }
        map.users().0.fetch_add(1, Ordering::Relaxed);
        Some(Self(map.clone()))
    }
}

impl Clone for MapUser {
    fn clone(&self) -> Self {
        self.0.users().0.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for MapUser {
    fn drop(&mut self) {
        if self.0.users().0.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.forget_programs();
        }
    }
}
