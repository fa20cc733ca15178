//! The closest name to a misspelled one, for messages.

/// Longest name that is compared: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate that differs from `name` in the fewest characters, if it is at most a third of them.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let distances = candidates.into_iter().filter_map(|c| Some((distance(name, c)?, c)));
    distances.filter(|(d, _)| *d <= most).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// How many characters are to be changed, added or left out to get from one name to another, capitals aside.
fn distance(a: &str, b: &str) -> Option<usize> {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    if a.chars().count() > LONGEST || b.len() > LONGEST {
        return None;
    }
    // One row of the table of distances between prefixes.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let changed = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn close_names_are_found_and_distant_ones_are_not() {
        let names = ["protocol", "saddr", "daddr", "sport"];
        assert_eq!(nearest("protocl", names), Some("protocol"));
        assert_eq!(nearest("SADDR", names), Some("saddr"));
        assert_eq!(nearest("port", names), Some("sport"));
        assert_eq!(nearest("ttl", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
