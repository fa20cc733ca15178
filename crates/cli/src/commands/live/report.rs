//! The counts of a live run.

use std::io::{self, Write};
use std::time::Duration;

use paceline::{Pipeline, PipelineCounts, PortCounts, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::common::rate::Rate;
use crate::common::report::Report;

/// Counts of a pipeline and its ports, with the names of these.
pub(super) struct Counts<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) ports: &'a [(u32, String)],
    /// Whether passed packets go to a port.
    pub(super) has_pass: bool,
    pub(super) time: Duration,
    /// The failure that ended the run.
    pub(super) error: Option<String>,
}

impl Counts<'_> {
    /// Sums by port: queues and workers are added up.
    fn by_port(&self) -> Vec<(&str, PortCounts)> {
        let all = self.pipeline.ports();
        let pass = self.ports.len() - usize::from(self.has_pass);
        let sum = |number: u32| {
            let of_port = all.iter().filter(|port| port.number == number);
            of_port.fold(PortCounts::default(), |sum, port| sum + *port)
        };
        // The port of passed packets is attached as number 0.
        let number = |index: usize, number: u32| if index == pass { 0 } else { number };
        let ports = self.ports.iter().enumerate();
        ports.map(|(index, (ifindex, name))| (name.as_str(), sum(number(index, *ifindex)))).collect()
    }
}

/// What became of packets besides their verdicts, with the names for JSON and for people.
fn rest(counts: &PipelineCounts) -> [(&'static str, &'static str, u64); 5] {
    [
        ("unknown_verdicts", "aborted for a return value that is no verdict", counts.unknown),
        ("refused", "not sent: a port had no room", counts.refused),
        ("no_target", "redirected to no port", counts.no_target),
        ("stopped", "dropped by programs of device maps", counts.stopped),
        ("lost", "lost by a port that failed", counts.lost),
    ]
}

impl Report for Counts<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let counts = self.pipeline.counts();
        let packets = counts.packets();
        let plural = if packets == 1 { "" } else { "s" };
        writeln!(out, "{packets} packet{plural} in {}", Rate(packets, self.time))?;
        for verdict in Verdict::ALL {
            let count = counts.of(verdict);
            let percent = count as f64 * 100.0 / packets.max(1) as f64;
            writeln!(out, "  {verdict:<8} {count:>12} {percent:>6.1}%")?;
        }
        for (_, text, count) in rest(&counts).into_iter().filter(|(_, _, count)| *count > 0) {
            writeln!(out, "  {text}: {count}")?;
        }
        let ports = self.by_port();
        let width = ports.iter().map(|(name, _)| name.chars().count()).chain([4]).max().unwrap_or(4);
        writeln!(
            out,
            "  {:<width$} {:>12} {:>12} {:>10} {:>10} {:>10}",
            "port", "received", "sent", "refused", "dropped", "copied"
        )?;
        for (name, port) in ports {
            let PortCounts { received, sent, refused, dropped, copied, .. } = port;
            writeln!(
                out,
                "  {name:<width$} {received:>12} {sent:>12} {refused:>10} {dropped:>10} {copied:>10}"
            )?;
        }
        Ok(())
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = self.pipeline.counts();
        let verdicts: Map<String, Json> = Verdict::ALL
            .iter()
            .map(|verdict| (verdict.name().to_owned(), counts.of(*verdict).into()))
            .collect();
        let ports: Vec<Json> = self.by_port().into_iter().map(|(name, port)| port_json(name, port)).collect();
        let mut object = json!({
            "packets": counts.packets(),
            "seconds": self.time.as_secs_f64(),
            "verdicts": verdicts,
            "sent": counts.sent,
        });
        for (name, _, count) in rest(&counts) {
            object[name] = count.into();
        }
        object["ports"] = ports.into();
        if let Some(error) = &self.error {
            object["error"] = error.as_str().into();
        }
        object.serialize(serializer)
    }
}

fn port_json(name: &str, counts: PortCounts) -> Json {
    let PortCounts { received, sent, refused, dropped, copied, .. } = counts;
    json!({
        "name": name,
        "received": received,
        "sent": sent,
        "refused": refused,
        "dropped": dropped,
        "copied": copied,
    })
}
