//! Two filters over all packets: whether libpcap's optimizer keeps what an expression matches.

use std::time::Duration;

#[cfg(feature = "libpcap")]
use paceline_classic::libpcap::{CompileError, Libpcap, Target};
use paceline_classic::{ConvertError, ConvertOptions, Filter, Returns};
#[cfg(feature = "libpcap")]
use paceline_classic::{LoadFrom, Operation, Purpose, SockFilter};
use paceline_frame::Verdict;

use crate::generate::{CompareError, Options, differences};
use crate::object::Object;

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

/// Instructions for which libpcap's optimizer takes seconds.
#[cfg(feature = "libpcap")]
const LONG: usize = 2000;
/// Length of the longest packets that are compared: no filter whose loads end before it tells longer ones from each other.
#[cfg(feature = "libpcap")]
const LONGEST: u16 = 1514;

/// The code of an expression that many packets will run through: what libpcap's optimizer makes of it, if it is proved within `time` that this
/// matches the same packets of all lengths; else the code without it, which takes up to four times as long in a long list of alternatives.
///
/// # Errors
/// libpcap's error.
#[cfg(feature = "libpcap")]
pub fn compile_checked(
    libpcap: &Libpcap,
    expression: &str,
    target: Target,
    options: &ConvertOptions,
    time: Duration,
) -> Result<Vec<SockFilter>, CompileError> {
    let plain = libpcap.compile(expression, Target { optimize: false, ..target })?;
    if plain.len() > LONG {
        return Ok(plain);
    }
    let Ok(optimized) = libpcap.compile(expression, Target { optimize: true, ..target }) else {
        return Ok(plain);
    };
    let filters = [&plain, &optimized].map(|insns| Filter::new(insns.clone(), Purpose::UserSpace));
    let [Ok(before), Ok(after)] = &filters else { return Ok(plain) };
    let is_short = |filter: &Filter| {
        let reads_length = |insn: &SockFilter| {
            insn.row().is_some_and(|row| matches!(row.operation, Operation::Load(_, LoadFrom::Length)))
        };
        filter.extent().is_some_and(|extent| extent <= LONGEST.into())
            && !filter.insns().iter().any(reads_length)
    };
    let is_proved = is_short(before)
        && is_short(after)
        && matches!(compare([before, after], options, LONGEST, time), Ok(Comparison::Equal));
    Ok(if is_proved { optimized } else { plain })
}
