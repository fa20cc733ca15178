//! What came out of a run.

use std::io::{self, Write};
use std::time::Duration;

use paceline::{Collection, Tally, Verdict};
use serde_json::{Map, Value, json};

use crate::args::Engine;
use crate::console;
use crate::failure::Failure;
use crate::maps;

/// A run that is over.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) tally: Tally,
    pub(super) time: Duration,
    pub(super) interrupted: bool,
}

/// A run with the names of what took part.
pub(super) struct Report<'a> {
    pub(super) run: Run,
    pub(super) object: &'a str,
    pub(super) program: &'a str,
    pub(super) capture: &'a str,
    pub(super) engine: Engine,
    /// The maps, where they are wanted.
    pub(super) maps: Option<&'a Collection>,
    /// What ended the run early.
    pub(super) error: Option<&'a Failure>,
}

impl Report<'_> {
    /// Prints the report, to standard error where standard output has the packets.
    pub(super) fn print(&self, json: bool, aside: bool) -> Result<(), Failure> {
        let write = |out: &mut dyn Write| if json { self.write_json(out) } else { self.write_text(out) };
        if aside {
            console::print_aside(write);
            return Ok(());
        }
        console::print(write).map(drop)
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Run { tally, time, interrupted } = &self.run;
        let Self { object, program, capture, .. } = self;
        let plural = if tally.packets == 1 { "" } else { "s" };
        write!(out, "{object}: {program}: {} packet{plural} of {capture}, ", tally.packets)?;
        writeln!(out, "{} bytes, in {}", tally.bytes, Rate(tally.packets, *time))?;
        if *interrupted || self.error.is_some() {
            writeln!(out, "  {}", if *interrupted { "interrupted" } else { "ended early" })?;
        }
        for verdict in Verdict::ALL {
            let count = tally.of(verdict);
            let percent = count as f64 * 100.0 / tally.packets.max(1) as f64;
            writeln!(out, "  {verdict:<8} {count:>12} {percent:>6.1}%")?;
        }
        if tally.unknown > 0 {
            writeln!(out, "  of the aborted, {} returned no verdict but another number", tally.unknown)?;
        }
        self.maps.map_or(Ok(()), |collection| maps::write_text(out, collection))
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let Run { tally, time, interrupted } = &self.run;
        let verdicts: Map<String, Value> = Verdict::ALL
            .iter()
            .map(|&verdict| (verdict.name().to_owned(), tally.of(verdict).into()))
            .collect();
        let mut object = json!({
            "object": self.object,
            "program": self.program,
            "capture": self.capture,
            "engine": self.engine.name(),
            "packets": tally.packets,
            "bytes": tally.bytes,
            "seconds": time.as_secs_f64(),
            "verdicts": verdicts,
            "unknown_verdicts": tally.unknown,
        });
        if *interrupted {
            object["interrupted"] = true.into();
        }
        if let Some(collection) = self.maps {
            object["maps"] = maps::to_json(collection);
        }
        if let Some(error) = self.error {
            object["error"] = error.to_string().into();
        }
        serde_json::to_writer(&mut *out, &object)?;
        writeln!(out)
    }
}

/// A time, and how many packets that is in a second.
struct Rate(u64, Duration);

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(packets, time) = self;
        let seconds = time.as_secs_f64();
        write!(f, "{time:.3?}")?;
        if *packets == 0 || seconds == 0.0 {
            return Ok(());
        }
        let rate = *packets as f64 / seconds;
        match rate {
            1e6.. => write!(f, " ({:.2} million packets/s)", rate / 1e6),
            1e3.. => write!(f, " ({:.0} thousand packets/s)", rate / 1e3),
            _ => write!(f, " ({rate:.1} packets/s)"),
        }
    }
}
