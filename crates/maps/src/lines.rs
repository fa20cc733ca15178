//! Free lines of a block: runs of neighbors, joined when they come back, so that free lines are never in shorter
//! pieces than the lines in use between them make them. Free lines before others that were never used are taken first.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Lines {
    /// Free runs that end before `fresh`: how long each is, by its first line. No two touch.
    runs: BTreeMap<u32, u32>,
    /// Their first lines, by how long they are; the last has all that are longer too.
    by_length: Box<[BTreeSet<u32>]>,
    /// All lines from here on are free.
    fresh: u32,
    all: u32,
}

impl Lines {
    /// So many lines, all free, of which at most `longest` are taken at once.
    pub(crate) fn new(all: u32, longest: u32) -> Self {
        let by_length = vec![BTreeSet::new(); longest as usize + 1].into_boxed_slice();
        Self { runs: BTreeMap::new(), by_length, fresh: 0, all }
    }

    /// Takes the first of so many neighbors, from the shortest run that has them.
    pub(crate) fn take(&mut self, count: u32) -> Option<u32> {
        let first = self.by_length.get(count as usize..)?.iter().find_map(|runs| runs.first().copied());
        match first {
            Some(first) => self.split(first, count),
            None => {
                let end = self.fresh.checked_add(count).filter(|&end| end <= self.all)?;
                Some(std::mem::replace(&mut self.fresh, end))
            }
        }
    }

    /// Takes lines from the first run that is long enough, if the run begins before a line.
    pub(crate) fn take_before(&mut self, count: u32, line: u32) -> Option<u32> {
        let long_enough = self.by_length.get(count as usize..)?;
        let first = long_enough.iter().filter_map(|runs| runs.first().copied()).min()?;
        if first < line { self.split(first, count) } else { None }
    }

    /// Gives lines back.
    pub(crate) fn put(&mut self, first: u32, count: u32) {
        let (mut first, mut end) = (first, first + count);
        if let Some((&before, &length)) = self.runs.range(..first).next_back()
            && before + length == first
        {
            self.remove(before);
            first = before;
        }
        if let Some(length) = self.remove(end) {
            end += length;
        }
        if end == self.fresh {
            self.fresh = first;
        } else {
            self.insert(first, end - first);
        }
    }

    /// Takes lines from the front of a run.
    fn split(&mut self, first: u32, count: u32) -> Option<u32> {
        let rest = self.remove(first)?.checked_sub(count)?;
        if rest != 0 {
            self.insert(first + count, rest);
        }
        Some(first)
    }

    fn insert(&mut self, first: u32, length: u32) {
        self.runs.insert(first, length);
        self.of_length(length).insert(first);
    }

    fn remove(&mut self, first: u32) -> Option<u32> {
        let length = self.runs.remove(&first)?;
        self.of_length(length).remove(&first);
        Some(length)
    }

    fn of_length(&mut self, length: u32) -> &mut BTreeSet<u32> {
        let longest = self.by_length.len() - 1;
        &mut self.by_length[longest.min(length as usize)]
    }

    /// Number of free lines.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn free(&self) -> u32 {
        self.all - self.fresh + self.runs.values().sum::<u32>()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::Lines;

    /// Lines of random lengths, taken and given back: none is given twice, and at the end all are one run.
    #[test]
    fn what_comes_back_is_joined() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut lines, mut taken, mut owner) = (Lines::new(1000, 17), Vec::new(), vec![false; 1000]);
        for _ in 0..100_000 {
            if rng.bool() {
                let count = rng.u32(1..=17);
                let Some(first) = lines.take(count) else { continue };
                for line in first..first + count {
                    assert!(!std::mem::replace(&mut owner[line as usize], true), "line {line} is in use");
                }
                taken.push((first, count));
            } else if !taken.is_empty() {
                let (first, count) = taken.swap_remove(rng.usize(..taken.len()));
                lines.put(first, count);
                (first..first + count).for_each(|line| owner[line as usize] = false);
            }
            assert_eq!(lines.free() as usize, owner.iter().filter(|owned| !**owned).count());
        }
        taken.into_iter().for_each(|(first, count)| lines.put(first, count));
        assert!(lines.runs.is_empty() && lines.fresh == 0);
        assert!(lines.by_length.iter().all(std::collections::BTreeSet::is_empty));
    }

    #[test]
    fn the_first_lines_are_taken_to_move_to() {
        let mut lines = Lines::new(10, 4);
        assert_eq!(lines.take(10), None, "more than the longest");
        let [a, b, c] = [2, 1, 3].map(|count| lines.take(count).unwrap());
        let _last = lines.take(1).unwrap();
        lines.put(a, 2);
        lines.put(c, 3);
        assert_eq!(lines.take_before(3, c), None);
        assert_eq!(lines.take_before(1, b), Some(a));
        assert_eq!(lines.take(3), Some(c));
    }
}
