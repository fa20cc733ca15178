//! The report of filters.

use std::io::{self, Write};
use std::time::Duration;

use paceline::Engine;
use paceline::filter::Matched;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::wanted::Loaded;
use crate::common::failure::Failure;
use crate::common::rate::Rate;
use crate::common::report;

/// A run that is over.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) read: Matched,
    pub(super) time: Duration,
    pub(super) interrupted: bool,
}

/// A run with the names for its report.
pub(super) struct Report<'a> {
    pub(super) run: Run,
    pub(super) capture: &'a str,
    pub(super) engine: Engine,
    pub(super) filters: Vec<(&'a Loaded, Matched)>,
    /// The failure that ended the run early.
    pub(super) error: Option<&'a Failure>,
}

impl report::Report for Report<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Run { read, time, interrupted } = self.run;
        let plural = if read.packets == 1 { "" } else { "s" };
        write!(out, "{}: {} packet{plural}, {} bytes, ", self.capture, read.packets, read.bytes)?;
        writeln!(out, "in {}", Rate(read.packets, time))?;
        if interrupted || self.error.is_some() {
            writeln!(out, "  {}", if interrupted { "interrupted" } else { "ended early" })?;
        }
        let name = |loaded: &Loaded| loaded.name.clone().unwrap_or_else(|| "match".to_owned());
        let names = self.filters.iter().map(|(loaded, _)| name(loaded).chars().count());
        let width = names.max().unwrap_or(0).max(8);
        for (loaded, matched) in &self.filters {
            let percent = matched.packets as f64 * 100.0 / read.packets.max(1) as f64;
            let Matched { packets, bytes } = matched;
            writeln!(out, "  {:<width$} {packets:>12} {percent:>6.1}% {bytes:>14} bytes", name(loaded))?;
        }
        Ok(())
    }
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Run { read, time, interrupted } = self.run;
        let filter = |(loaded, matched): &(&Loaded, Matched)| {
            json!({
                "name": loaded.name,
                "expression": loaded.expression,
                "packets": matched.packets,
                "bytes": matched.bytes,
            })
        };
        let mut object = json!({
            "capture": self.capture,
            "engine": self.engine.name(),
            "packets": read.packets,
            "bytes": read.bytes,
            "seconds": time.as_secs_f64(),
            "filters": self.filters.iter().map(filter).collect::<Vec<_>>(),
        });
        if interrupted {
            object["interrupted"] = json!(true);
        }
        if let Some(error) = self.error {
            object["error"] = json!(error.to_string());
        }
        object.serialize(serializer)
    }
}
