//! Allocator of an arena's extents: free extents by address, to merge neighbors, and by length, for best fit.

use std::collections::{BTreeMap, BTreeSet};

/// Granularity of extents in bytes: a cache line.
pub(crate) const GRAIN: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Extents {
    by_start: BTreeMap<usize, usize>,
    by_len: BTreeSet<(usize, usize)>,
}

impl Extents {
    /// Allocates `len` bytes, a multiple of [`GRAIN`], at a multiple of `alignment`: best fit, lowest address first.
    pub(crate) fn take(&mut self, len: usize, alignment: usize) -> Option<usize> {
        let (free_len, free_start) =
            self.by_len.range((len, 0)..).copied().find(|&(free_len, free_start)| {
                free_start.next_multiple_of(alignment) - free_start <= free_len - len
            })?;
        let start = free_start.next_multiple_of(alignment);
        self.remove(free_start, free_len);
        self.insert(free_start, start - free_start);
        self.insert(start + len, free_start + free_len - (start + len));
        Some(start)
    }

    /// Frees an extent, and merges it with its free neighbors.
    pub(crate) fn give(&mut self, mut start: usize, mut len: usize) {
        if let Some((&before, &before_len)) = self.by_start.range(..start).next_back()
            && before + before_len == start
        {
            self.remove(before, before_len);
            start = before;
            len += before_len;
        }
        if let Some(&after_len) = self.by_start.get(&(start + len)) {
            self.remove(start + len, after_len);
            len += after_len;
        }
        self.insert(start, len);
    }

    /// Size of the largest free extent in bytes.
    pub(crate) fn largest(&self) -> usize {
        self.by_len.last().map_or(0, |&(len, _)| len)
    }

    fn insert(&mut self, start: usize, len: usize) {
        if len > 0 {
            self.by_start.insert(start, len);
            self.by_len.insert((len, start));
        }
    }

    fn remove(&mut self, start: usize, len: usize) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_merge_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut extents = Extents::default();
            for place in order {
                extents.give(place * 128, 128);
            }
            assert_eq!(extents.by_start, BTreeMap::from([(0, 384)]), "{order:?}");
            assert_eq!(extents.by_len, BTreeSet::from([(384, 0)]), "{order:?}");
        }
    }

    #[test]
    fn best_fit_and_alignment() {
        let mut extents = Extents::default();
        extents.give(64, 256);
        extents.give(1024, 128);
        assert_eq!(extents.take(128, 64), Some(1024), "the shortest that has room");
        assert_eq!(extents.take(64, 256), Some(256), "what alignment skips stays free");
        assert_eq!(extents.by_start, BTreeMap::from([(64, 192)]));
        assert_eq!(extents.take(256, 64), None);
        assert_eq!(extents.largest(), 192);
    }
}
