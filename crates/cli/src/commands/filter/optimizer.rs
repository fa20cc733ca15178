//! Printed code of an expression, which libpcap's optimizer made: compared with what the expression says.

use std::time::Duration;

use paceline::capture::Link;
use paceline::filter::{Comparison, Filter, Libpcap, Matched, Purpose, Target, compare, target_of};
use paceline::packet::to_text;

use super::error::FilterError;
use super::wanted::{Compiled, Loaded, Source};
use crate::common::console;
use crate::common::failure::Failure;
use crate::expression::{self, brief};

/// Time of a comparison.
const TIME: Duration = Duration::from_secs(2);
/// Length of the longest packets that are compared.
const LONGEST: u16 = 1514;
/// Instructions for which the optimizer takes seconds; its time grows faster than the square of their number.
const LONG: usize = 5000;

/// The code of an expression as tcpdump prints it, by libpcap's optimizer. A note says if it matches other packets.
pub(super) fn optimized(plain: Compiled, target: Target) -> Result<Compiled, Failure> {
    let Source::Expression(passage) = &plain.source else { return Ok(plain) };
    let before = plain.filter.insns().len();
    if before > LONG {
        console::note(format_args!(
            "libpcap's optimizer may take minutes for these {before} instructions; -O leaves it out"
        ));
    }
    let libpcap = Libpcap::open().map_err(FilterError::Libpcap)?;
    let insns = expression::compile(&libpcap, passage, Target { optimize: true, ..target })?;
    let filter = Filter::new(insns, Purpose::UserSpace)
        .map_err(|source| FilterError::Check { name: plain.title(), source })?;
    tell(&plain, &filter)?;
    Ok(Compiled { filter, ..plain })
}

/// Notes that an expression which matched nothing cannot match, if libpcap's optimizer finds that out.
pub(super) fn tell_of_nothing(loaded: &Loaded, matched: Matched, link: Link) -> Result<(), FilterError> {
    let is_short = loaded.filter.filter().is_some_and(|filter| filter.insns().len() <= LONG);
    let Some(expression) = loaded.expression.as_deref().filter(|_| is_short && matched.packets == 0) else {
        return Ok(());
    };
    let libpcap = Libpcap::open().map_err(FilterError::Libpcap)?;
    let optimized = libpcap.compile(expression, Target { optimize: true, ..target_of(link) });
    if optimized.is_err_and(|error| error.message.ends_with("rejects all packets")) {
        let expression = brief(expression);
        console::note(format_args!("no packet can match `{expression}`, by libpcap's optimizer"));
    }
    Ok(())
}

fn tell(plain: &Compiled, optimized: &Filter) -> Result<(), FilterError> {
    let compared = compare([&plain.filter, optimized], &plain.options(), LONGEST, TIME);
    match compared.map_err(|source| FilterError::Compare { name: plain.title(), source: Box::new(source) })? {
        Comparison::Equal => {}
        Comparison::Differ { packet, first_matches } => {
            let (says, does) =
                if first_matches { ("matches", "does not") } else { ("does not match", "does") };
            console::note(format_args!(
                "libpcap's optimizer changed the filter: the expression {says} {}, and this code {does}; -O prints what the \
                 expression says, which is what `paceline filter` runs",
                to_text(&packet)
            ));
        }
        Comparison::Unknown => console::note(format_args!(
            "whether libpcap's optimizer kept what the expression matches was not proved in {} seconds; -O leaves it out",
            TIME.as_secs()
        )),
    }
    Ok(())
}
