//! The counts of a live run.

use std::io::{self, Write};
use std::time::Duration;

use paceline::{Pipeline, PortCounts, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::common::report::Report;
use crate::control::write_counts;

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

    /// As `--json` and the control socket have it.
    pub(super) fn to_json(&self) -> Json {
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
            "unknown_verdicts": counts.unknown,
            "refused": counts.refused,
            "no_target": counts.no_target,
            "stopped": counts.stopped,
            "lost": counts.lost,
            "ports": ports,
        });
        if let Some(error) = &self.error {
            object["error"] = error.as_str().into();
        }
        object
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

impl Report for Counts<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_counts(out, &self.to_json())
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}
