//! The closest name to a misspelled one, for messages.
#![forbid(unsafe_code)]

/// Longest name that is compared, in characters: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate with the smallest distance to `name`: the number of characters to change, insert, delete or swap with the
/// next one, case aside. `None` where it is more than a third of the name's characters.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let distances = candidates.into_iter().filter_map(|c| Some((distance(name, c)?, c)));
    distances.filter(|(d, _)| *d <= most).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

fn distance(a: &str, b: &str) -> Option<usize> {
    let short = |name: &str| name.chars().nth(LONGEST).is_none();
    (short(a) && short(b)).then(|| strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase()))
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
