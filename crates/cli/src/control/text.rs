//! Counts of a live run as text, from the JSON that the run itself and the control socket have.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::time::Duration;

use paceline::Verdict;
use serde_json::Value as Json;

use super::counts::{LOSSES, PORT};
use crate::common::console::shown;
use crate::common::rate::Rate;

/// Places of aborted packets that are listed.
const PLACES: usize = 10;

/// Writes the counts.
pub(crate) fn write_counts(out: &mut dyn Write, counts: &Json) -> io::Result<()> {
    let packets = number(&counts["packets"]);
    let time = Duration::try_from_secs_f64(counts["seconds"].as_f64().unwrap_or(0.0)).unwrap_or_default();
    let plural = if packets == 1 { "" } else { "s" };
    writeln!(out, "{packets} packet{plural} in {}", Rate(packets, time))?;
    for verdict in Verdict::ALL {
        let count = number(&counts["verdicts"][verdict.name()]);
        let percent = count as f64 * 100.0 / packets.max(1) as f64;
        writeln!(out, "  {verdict:<8} {count:>12} {percent:>6.1}%")?;
    }
    for loss in &LOSSES {
        match number(&counts[loss.name]) {
            0 => {}
            count => writeln!(out, "  {}: {count}", loss.help)?,
        }
    }
    write_aborted(out, &counts["followed"])?;
    write_ports(out, counts["ports"].as_array().map_or(&[], Vec::as_slice))
}

/// A place where packets were aborted.
pub(crate) struct AbortedPlace<'a> {
    pub(crate) program: &'a str,
    /// Its last branch.
    pub(crate) branch: &'a str,
    pub(crate) packets: u64,
}

/// The places of `aborted` in counts, those of the most packets first.
pub(crate) fn aborted_places(aborted: &Json) -> Vec<AbortedPlace<'_>> {
    let programs = aborted.as_object().into_iter().flatten();
    let mut places: Vec<_> = programs
        .flat_map(|(program, branches)| {
            let branches = branches.as_object().into_iter().flatten();
            branches.map(move |(branch, packets)| AbortedPlace { program, branch, packets: number(packets) })
        })
        .collect();
    places.sort_by_key(|place| Reverse(place.packets));
    places
}

/// Where packets were aborted, the most frequent places first.
fn write_aborted(out: &mut dyn Write, followed: &Json) -> io::Result<()> {
    let places = aborted_places(&followed["aborted"]);
    let sum: u64 = places.iter().map(|place| place.packets).sum();
    for AbortedPlace { program, branch, packets } in places.into_iter().take(PLACES) {
        let percent = packets as f64 * 100.0 / sum.max(1) as f64;
        let (program, branch) = (shown(program), shown(branch));
        writeln!(
            out,
            "  aborted by {program}, last branch {branch}: {percent:.1}% of {sum} that were followed"
        )?;
    }
    Ok(())
}

fn write_ports(out: &mut dyn Write, ports: &[Json]) -> io::Result<()> {
    let name = |port: &Json| shown(port["name"].as_str().unwrap_or_default());
    let width = ports.iter().map(|port| name(port).chars().count()).chain([4]).max().unwrap_or(4);
    write!(out, "  {:<width$}", "port")?;
    PORT.iter().try_for_each(|count| write!(out, " {:>12}", count.heading()))?;
    writeln!(out)?;
    for port in ports {
        write!(out, "  {:<width$}", name(port))?;
        PORT.iter().try_for_each(|count| write!(out, " {:>12}", number(&port[count.name])))?;
        writeln!(out)?;
    }
    Ok(())
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap_or(0)
}
