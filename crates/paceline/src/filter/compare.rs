//! Two filters over all packets: whether libpcap's optimizer keeps what an expression matches.

use std::time::Duration;

use paceline_classic::{ConvertError, ConvertOptions, Filter, Returns};
use paceline_frame::Verdict;

use crate::generate::{CompareError, differences};
use crate::load::Object;
use paceline_analysis::symbolic::Options;

/// What is known of two filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They match the same packets of every length up to the limit, of those that were captured whole.
    Equal,
    /// A packet that only one of them matches.
    Differ {
        /// The packet's bytes.
        packet: Vec<u8>,
        /// Whether it is the first one that matches it.
        first_matches: bool,
    },
    /// Neither is known in the given time.
    Unknown,
}

/// Two filters cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareFiltersError {
    /// A filter cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The converted programs cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// Looks for a packet of 1 to `longest` bytes that one filter matches and the other does not, or proves that there is none. Both are
/// converted by `options`.
///
/// # Errors
/// [`CompareFiltersError`].
pub fn compare(
    [first, second]: [&Filter; 2],
    options: &ConvertOptions,
    longest: u16,
    time: Duration,
) -> Result<Comparison, CompareFiltersError> {
    let options = options.returns(Returns::PASS_OR_DROP);
    let object = |filter: &Filter| filter.to_xdp("filter", &options).map(Object::of_program);
    let (first, second) = (object(first)?, object(second)?);
    let ([old], [new]) = (first.programs(), second.programs()) else { return Ok(Comparison::Unknown) };
    let limits = Options { time, length: (1, longest), ..Options::default() };
    let found = differences((&first, old), (&second, new), &limits, 1, &mut |_| {})?;
    Ok(match found.found.first() {
        Some(difference) => Comparison::Differ {
            packet: difference.old.input.packet.clone(),
            first_matches: difference.old.verdict == Verdict::Pass,
        },
        None if found.is_complete() => Comparison::Equal,
        None => Comparison::Unknown,
    })
}
