//! Times of all rounds.

use std::time::Duration;

use paceline::measure::{Manner, MeasureError, Ratio, Room, Summary};
use serde_json::{Value as Json, json};

use super::args::ReportArgs;
use crate::chain::SourceArgs;
use crate::common::capture::CapturedPacket;
use crate::common::failure::{CommandError, Failure};
use crate::measure::{Contender, timed};

/// Rounds and the least time of each, as `paceline bench` has them.
const ROUNDS: u32 = 30;
const ROUND: Duration = Duration::from_millis(5);

impl CommandError for MeasureError {}

/// Measures the programs of the page, in bursts and alone.
pub(super) fn of_rounds(args: &ReportArgs, packets: &[CapturedPacket]) -> Result<Json, Failure> {
    let other =
        args.against.iter().map(|against| SourceArgs::of(vec![against.clone()], args.source.object.clone()));
    let sources = [args.source.clone()].into_iter().chain(other);
    let load = |source: SourceArgs| Contender::load(&source, None, false, &args.world);
    let mut contenders = sources.map(load).collect::<Result<Vec<_>, _>>()?;
    let mut room = Room::new(false);
    let mut measured = Vec::new();
    for (what, manner) in [("in bursts of 64", Manner::Bursts), ("alone", Manner::Alone)] {
        let times = timed(&mut contenders, packets, manner, (ROUNDS, ROUND), &mut room)?;
        let of = |times: &Vec<f64>| {
            let Summary { min, median, p99 } = Summary::of(times);
            json!({ "min": min, "median": median, "p99": p99, "rounds": times })
        };
        let ratio = match times.as_slice() {
            [ours, theirs] => Some(Ratio::of(ours, theirs).in_words()),
            _ => None,
        };
        measured
            .push(json!({ "what": what, "times": times.iter().map(of).collect::<Vec<_>>(), "ratio": ratio }));
    }
    let names: Vec<_> = contenders.iter().map(|contender| contender.subject.name.clone()).collect();
    Ok(json!({ "names": names, "engine": contenders.first().map(|c| c.engine.name()), "measured": measured }))
}
