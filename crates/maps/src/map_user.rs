//! Users of maps that hold programs.

use std::sync::Arc;

use crate::map::Map;

/// A user of a map that holds programs: a program array, a device or CPU map, a map with timers, which call programs, or a map of
/// maps. The drop of the last user removes the array's entries, the timers, and the programs of entries, as the kernel does when the
/// last descriptor of the map is closed: programs hold their maps, so a map that holds programs would keep itself alive. The users of a
/// map of maps also use its inner maps.
pub struct MapUser {
    map: Arc<Map>,
    /// Whether the last user releases the map's programs.
    forgets: bool,
}

impl std::fmt::Debug for MapUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapUser").finish_non_exhaustive()
    }
}

impl MapUser {
    /// A new user; `None` if the map holds no programs.
    #[must_use]
    pub fn new(map: &Arc<Map>) -> Option<Self> {
        if !map.holds_programs() {
            return None;
        }
        let mut users = map.users().lock();
        *users += 1;
        if *users == 1
            && let Some(inner) = map.inner_maps()
        {
            inner.use_all();
        }
        drop(users);
        Some(Self { map: map.clone(), forgets: true })
    }

    /// Ends the use without releasing the map's programs, as the kernel does when an inner map is removed.
    pub(crate) fn leave(mut self) {
        self.forgets = false;
    }
}

impl Clone for MapUser {
    fn clone(&self) -> Self {
        *self.map.users().lock() += 1;
        Self { map: self.map.clone(), forgets: true }
    }
}

impl Drop for MapUser {
    fn drop(&mut self) {
        let mut users = self.map.users().lock();
        *users -= 1;
        let is_last = *users == 0 && self.forgets;
        let inner = self.map.inner_maps().filter(|_| is_last).map(|inner| inner.leave_all());
        drop(users);
        // Outside the lock: programs go.
        drop(inner);
        if is_last {
            self.map.forget_programs();
        }
    }
}
