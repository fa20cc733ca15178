//! What helps messages: the closest name to a misspelled one, and the format of a file that is given in the place of another.
#![forbid(unsafe_code)]

mod format;

pub use format::format_of;

/// Longest name that is compared, in characters: the work grows with the product of the lengths.
const LONGEST: usize = 64;

/// The candidate with the smallest distance to `name`: the number of characters to change, insert, delete or swap with the
/// next one, case aside. `None` where it is more than a third of the name's characters.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let distances = candidates.into_iter().filter_map(|c| Some((distance(name, c)?, c)));
    distances.filter(|(d, _)| *d <= most).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// The candidate that was most likely meant: the [`nearest`] one, or else the first of the shortest that begin with `name`, or
/// with which `name` begins, case aside.
pub fn meant<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let begins = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        lower.len().min(candidate.len()) > 1
            && (candidate.starts_with(&lower) || lower.starts_with(&candidate))
    };
    nearest(name, candidates.clone())
        .or_else(|| candidates.into_iter().filter(|candidate| begins(candidate)).min_by_key(|c| c.len()))
}

fn distance(a: &str, b: &str) -> Option<usize> {
    let short = |name: &str| name.chars().nth(LONGEST).is_none();
    (short(a) && short(b)).then(|| strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::{meant, nearest};

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

    #[test]
    fn names_that_begin_alike_are_meant_where_none_is_close() {
        let names = ["eth", "ipv6", "ipv4", "icmp", "icmpv6"];
        assert_eq!(meant("ip", ["eth", "ipv4", "ipv6"]), Some("ipv4"));
        assert_eq!(meant("Ethernet", names), Some("eth"));
        assert_eq!(meant("icm", names), Some("icmp"));
        assert_eq!(meant("i", names), None);
        assert_eq!(meant("tcp", names), None);
    }
}
