//! Expressions, compiled by libpcap with its optimizer where that is proved to keep what they match.

use std::time::Duration;

use paceline_classic::libpcap::{CompileError, Libpcap, Target};
use paceline_classic::{ConvertOptions, SockFilter};

/// The code of an expression that many packets will run through: what libpcap's optimizer makes of it, if it is proved within `time` that this
/// matches the same packets of all lengths; else the code without it, which takes up to four times as long in a long list of alternatives.
/// Without the feature `analysis` nothing is proved.
///
/// # Errors
/// libpcap's error.
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
    Ok(if is_proved([&plain, &optimized], options, time) { optimized } else { plain })
}

/// Instructions for which libpcap's optimizer takes seconds.
const LONG: usize = 2000;

#[cfg(not(feature = "analysis"))]
fn is_proved(_: [&Vec<SockFilter>; 2], _: &ConvertOptions, _: Duration) -> bool {
    false
}

/// Whether two filters match the same packets.
#[cfg(feature = "analysis")]
fn is_proved(filters: [&Vec<SockFilter>; 2], options: &ConvertOptions, time: Duration) -> bool {
    use paceline_classic::{Filter, LoadFrom, Operation, Purpose};

    use super::compare::{Comparison, compare};

    /// Length of the longest packets that are compared: no filter whose loads end before it tells longer ones from each other.
    const LONGEST: u16 = 1514;

    let [Ok(before), Ok(after)] = &filters.map(|insns| Filter::new(insns.clone(), Purpose::UserSpace)) else {
        return false;
    };
    let is_short = |filter: &Filter| {
        let reads_length = |insn: &SockFilter| {
            insn.row().is_some_and(|row| matches!(row.operation, Operation::Load(_, LoadFrom::Length)))
        };
        filter.extent().is_some_and(|extent| extent <= LONGEST.into())
            && !filter.insns().iter().any(reads_length)
    };
    is_short(before)
        && is_short(after)
        && matches!(compare([before, after], options, LONGEST, time), Ok(Comparison::Equal))
}
