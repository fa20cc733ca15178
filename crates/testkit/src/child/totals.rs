//! Counts that children send.

use std::collections::BTreeMap;

use crate::say;

/// Prefix of a line with a count.
const COUNT: &str = "@count ";

/// Counts by name, each with its least seed.
#[derive(Clone, Debug, Default)]
pub struct Totals(BTreeMap<String, (u64, u64)>);

impl Totals {
    /// Adds to the count of a name.
    pub fn add(&mut self, name: impl Into<String>, count: u64, seed: u64) {
        let entry = self.0.entry(name.into()).or_insert((0, seed));
        *entry = (entry.0 + count, entry.1.min(seed));
    }

    /// A count, 0 if the name was never counted.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |(count, _)| *count)
    }

    /// Name without the prefix, count and least seed of all names with a prefix.
    pub fn of<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64, u64)> + 'a {
        self.0
            .iter()
            .filter_map(move |(name, (count, seed))| Some((name.strip_prefix(prefix)?, *count, *seed)))
    }

    /// Sends the counts to the parent and resets them.
    pub fn send(&mut self) {
        for (name, (count, seed)) in std::mem::take(&mut self.0) {
            say!("{COUNT}{count} {seed} {name}");
        }
    }

    /// Adds a line of counts from a child; returns any other line.
    ///
    /// # Errors
    /// The line.
    pub fn receive<'a>(&mut self, line: &'a str) -> Result<(), &'a str> {
        let text = line.strip_prefix(COUNT).ok_or(line)?;
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (count, seed) = (number(), number());
        if let (Some(count), Some(seed), Some(name)) = (count, seed, words.next()) {
            self.add(name, count, seed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_told_and_added() {
        let mut totals = Totals::default();
        for line in ["@count 3 17 a name", "@count 4 5 a name", "@count 4 nonsense"] {
            assert_eq!(totals.receive(line), Ok(()));
        }
        assert_eq!(totals.receive("a line"), Err("a line"));
        assert_eq!(totals.get("a name"), 7);
        assert_eq!(totals.of("a ").collect::<Vec<_>>(), [("name", 7, 5)]);
    }
}
