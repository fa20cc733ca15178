//! The report of a scan.

use std::io::{self, Write};
use std::time::Duration;

use paceline::{Collection, Engine, Verdict};
use paceline_archive::{Opened, Report as Scanned, Totals};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::common::failure::Failure;
use crate::common::rate::Rate;
use crate::common::report;
use crate::maps::{self, Form, MapsAsJson};

/// Losses of a capture that are told one by one.
const TOLD: usize = 10;

/// A scan that is over, with the names for its report.
pub(super) struct Report<'a> {
    pub(super) scanned: &'a Scanned,
    pub(super) captures: &'a [Opened],
    pub(super) time: Duration,
    pub(super) engine: Engine,
    pub(super) workers: usize,
    /// Names of object and program.
    pub(super) program: Option<(&'a str, &'a str)>,
    pub(super) maps: Option<&'a Collection>,
    /// The failure that ended the scan early.
    pub(super) error: Option<&'a Failure>,
}

fn percent(part: u64, of: u64) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

impl report::Report for Report<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Totals { read, matched, verdicts, .. } = self.scanned.totals();
        let what = match self.captures {
            [capture] => capture.source.name.clone(),
            several => format!("{} captures", several.len()),
        };
        let plural = if read.packets == 1 { "" } else { "s" };
        write!(out, "{what}: {} packet{plural}, {} bytes, in ", read.packets, read.bytes)?;
        writeln!(out, "{}", Rate(read.packets, self.time))?;
        if self.scanned.interrupted || self.error.is_some() {
            writeln!(out, "  {}", if self.scanned.interrupted { "interrupted" } else { "ended early" })?;
        }
        let share = percent(matched.packets, read.packets);
        writeln!(out, "  {:<8} {:>12} {share:>6.1}% {:>14} bytes", "match", matched.packets, matched.bytes)?;
        if let Some((object, program)) = self.program {
            writeln!(out, "{object}: {program}")?;
            for (verdict, count) in Verdict::ALL.into_iter().zip(verdicts) {
                writeln!(out, "  {verdict:<8} {count:>12} {:>6.1}%", percent(count, matched.packets))?;
            }
        }
        for (capture, totals) in self.captures.iter().zip(&self.scanned.captures) {
            write_losses(out, &capture.source.name, totals)?;
        }
        self.maps.map_or(Ok(()), |collection| maps::write_text(out, collection))
    }
}

fn write_losses(out: &mut dyn Write, name: &str, totals: &Totals) -> io::Result<()> {
    for lost in totals.lost.iter().take(TOLD) {
        writeln!(out, "{name}: bytes {} to {} are lost: {}", lost.from, lost.to, lost.damage)?;
    }
    match totals.lost.len().saturating_sub(TOLD) {
        0 => Ok(()),
        more => writeln!(out, "{name}: and bytes at {more} other places"),
    }
}

impl Report<'_> {
    fn captures_to_json(&self) -> Vec<Json> {
        let captures = self.captures.iter().zip(&self.scanned.captures);
        let capture = |(capture, totals): (&Opened, &Totals)| {
            let lost = totals
                .lost
                .iter()
                .map(|lost| json!({ "from": lost.from, "to": lost.to, "damage": lost.damage.to_string() }));
            json!({
                "capture": capture.source.name,
                "packets": totals.read.packets,
                "bytes": totals.read.bytes,
                "matched": { "packets": totals.matched.packets, "bytes": totals.matched.bytes },
                "lost": lost.collect::<Vec<_>>(),
            })
        };
        captures.map(capture).collect()
    }
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Totals { read, matched, verdicts, .. } = self.scanned.totals();
        let mut object = json!({
            "engine": self.engine.name(),
            "workers": self.workers,
            "packets": read.packets,
            "bytes": read.bytes,
            "seconds": self.time.as_secs_f64(),
            "matched": { "packets": matched.packets, "bytes": matched.bytes },
            "captures": self.captures_to_json(),
        });
        if let Some((name, program)) = self.program {
            object["object"] = json!(name);
            object["program"] = json!(program);
            let counts = Verdict::ALL.into_iter().zip(verdicts);
            object["verdicts"] =
                counts.map(|(verdict, count)| (verdict.name().to_owned(), json!(count))).collect();
        }
        if self.scanned.interrupted {
            object["interrupted"] = json!(true);
        }
        if let Some(error) = self.error {
            object["error"] = json!(error.to_string());
        }
        if let Some(collection) = self.maps {
            object["maps"] = serde_json::to_value(MapsAsJson(collection, Form::Both))
                .map_err(serde::ser::Error::custom)?;
        }
        object.serialize(serializer)
    }
}
