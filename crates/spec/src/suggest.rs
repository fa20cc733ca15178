//! The closest name to a misspelled one, for messages.

/// Longest name that is compared: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate that differs from `name` in the fewest characters, if it is at most a third of them.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let distances = candidates.into_iter().filter_map(|c| Some((distance(name, c)?, c)));
    distances.filter(|(d, _)| *d <= most).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// How many characters are to be changed, added, left out or swapped with the next to get from one name to another,
/// capitals aside.
fn distance(a: &str, b: &str) -> Option<usize> {
    let letters = |name: &str| name.to_lowercase().chars().collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    // Rows of the table of distances between prefixes: the last but one, the last and the next.
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            let swap = before.get(j.wrapping_sub(1)).filter(|_| swapped).map_or(usize::MAX, |d| d + 1);
            let change = last.get(j)? + usize::from(x != y);
            next.push(change.min(last.get(j + 1)? + 1).min(next.get(j)? + 1).min(swap));
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied()
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
        assert_eq!(nearest("dadrd", names), Some("daddr"));
        assert_eq!(nearest("ttl", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
