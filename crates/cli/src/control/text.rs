//! Counts of a live run as text, from the JSON that the run itself and the control socket have.

use std::io::{self, Write};
use std::time::Duration;

use paceline::Verdict;
use serde_json::Value as Json;

use crate::common::console::shown;
use crate::common::rate::Rate;

/// Packets that were neither passed on nor dropped by a program, with the text for people.
const REST: [(&str, &str); 5] = [
    ("unknown_verdicts", "aborted for a return value that is no verdict"),
    ("refused", "not sent: a port had no room"),
    ("no_target", "redirected to no port"),
    ("stopped", "dropped by programs of device maps"),
    ("lost", "lost by a port that failed"),
];

/// Places of aborted packets that are listed.
const PLACES: usize = 10;

/// Columns of a port.
const COLUMNS: [&str; 5] = ["received", "sent", "refused", "dropped", "copied"];

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
    for (name, text) in REST {
        match number(&counts[name]) {
            0 => {}
            count => writeln!(out, "  {text}: {count}")?,
        }
    }
    write_aborted(out, &counts["followed"])?;
    write_ports(out, counts["ports"].as_array().map_or(&[], Vec::as_slice))
}

/// Where packets were aborted, the most frequent places first.
fn write_aborted(out: &mut dyn Write, followed: &Json) -> io::Result<()> {
    let programs = followed["aborted"].as_object().into_iter().flatten();
    let mut places: Vec<_> = programs
        .flat_map(|(program, branches)| {
            let branches = branches.as_object().into_iter().flatten();
            branches.map(move |(branch, packets)| (number(packets), program, branch))
        })
        .collect();
    places.sort_by(|a, b| b.cmp(a));
    let sum: u64 = places.iter().map(|(packets, ..)| packets).sum();
    for (packets, program, branch) in places.into_iter().take(PLACES) {
        let percent = packets as f64 * 100.0 / sum as f64;
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
    COLUMNS.iter().try_for_each(|column| write!(out, " {column:>12}"))?;
    writeln!(out)?;
    for port in ports {
        write!(out, "  {:<width$}", name(port))?;
        COLUMNS.iter().try_for_each(|column| write!(out, " {:>12}", number(&port[column])))?;
        writeln!(out)?;
    }
    Ok(())
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap_or(0)
}
