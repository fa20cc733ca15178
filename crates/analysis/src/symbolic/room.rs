//! How many more elements fit into a map, as far as a path tells.
//!
//! An interval, which insertions, removals and elements that are there narrow: an insertion that may find the map full is two
//! paths.

/// The room that a map has from the start, and what the path added and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Fewest elements that fit from the start.
    least: u32,
    /// Most elements that fit from the start.
    most: u32,
    /// Elements that are there from the start, of those that the path asked for.
    there: u32,
    /// Elements added minus elements removed.
    added: i64,
}

impl Default for Room {
    fn default() -> Self {
        Self { least: 0, most: u32::MAX, there: 0, added: 0 }
    }
}

impl Room {
    /// Most elements that fit from the start, of a map for so many elements.
    pub(crate) fn most(&self, entries: u32) -> u32 {
        self.most.min(entries.saturating_sub(self.there))
    }

    /// Whether another element may be there from the start.
    pub(crate) fn allows_another(&self, entries: u32) -> bool {
        self.least < entries.saturating_sub(self.there)
    }

    /// Notes that an element is there from the start.
    pub(crate) fn is_there(&mut self) {
        self.there += 1;
    }

    /// Whether the map is full now; `None` if it may be, or not.
    pub(crate) fn is_full(&self, entries: u32) -> Option<bool> {
        if i64::from(self.least) > self.added {
            Some(false)
        } else if i64::from(self.most(entries)) <= self.added {
            Some(true)
        } else {
            None
        }
    }

    /// Assumes that the map is full now, or not.
    pub(crate) fn assume(&mut self, full: bool) {
        let added = u32::try_from(self.added).unwrap_or(0);
        if full {
            self.most = added;
        } else if self.added >= 0 {
            self.least = self.least.max(added + 1);
        }
    }

    /// Begins another run with the same elements from the start.
    pub(crate) fn begin(&mut self) {
        self.added = 0;
    }

    pub(crate) fn add(&mut self) {
        self.added += 1;
    }

    pub(crate) fn remove(&mut self) {
        self.added -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_one_is_full_after_one() {
        let mut room = Room::default();
        assert_eq!(room.is_full(1), None);
        room.assume(false);
        room.add();
        assert_eq!((room.is_full(1), room.allows_another(1)), (Some(true), false));
        room.remove();
        assert_eq!(room.is_full(1), Some(false));
    }

    #[test]
    fn a_full_map_has_room_after_a_removal() {
        let mut room = Room::default();
        room.is_there();
        room.assume(true);
        assert_eq!((room.most(8), room.allows_another(8)), (0, true));
        room.remove();
        assert_eq!(room.is_full(8), Some(false));
        room.add();
        assert_eq!(room.is_full(8), Some(true));
    }

    #[test]
    fn elements_that_are_there_take_room() {
        let mut room = Room::default();
        room.assume(false);
        room.add();
        assert!(room.allows_another(2));
        room.is_there();
        assert!(!room.allows_another(2));
        assert_eq!(room.is_full(2), Some(true));
    }
}
