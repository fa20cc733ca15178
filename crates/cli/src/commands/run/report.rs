//! The report of a run.

use std::io::{self, Write};
use std::time::Duration;

use paceline::explain::Reasons;
use paceline::{Collection, Engine, Layout, Status, Tally, Verdict};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::events::EventCount;
use super::redirects::Redirects;
use crate::chain::{
    LayoutAsJson, Loaded, Part, StatusAsJson, Tracer, TracesAsJson, write_status, write_traces,
};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::rate::Rate;
use crate::common::reasons::{self, write_reasons};
use crate::common::report;
use crate::maps::{self, Form, MapsAsJson};

/// A run that is over.
pub(super) struct Run {
    pub(super) tally: Tally,
    pub(super) time: Duration,
    pub(super) interrupted: bool,
    /// The events, where they are written.
    pub(super) events: Option<EventCount>,
    pub(super) redirects: Redirects,
    /// The reasons of the verdicts, where they are wanted.
    pub(super) reasons: Option<Reasons>,
}

impl Run {
    fn write_text(
        &self,
        out: &mut dyn Write,
        what: &str,
        capture: &str,
        ended_early: bool,
    ) -> io::Result<()> {
        let Self { tally, time, interrupted, events, redirects, reasons } = self;
        let plural = if tally.packets == 1 { "" } else { "s" };
        write!(out, "{what}: {} packet{plural} of {capture}, ", tally.packets)?;
        writeln!(out, "{} bytes, in {}", tally.bytes, Rate(tally.packets, *time))?;
        if *interrupted || ended_early {
            writeln!(out, "  {}", if *interrupted { "interrupted" } else { "ended early" })?;
        }
        for verdict in Verdict::ALL {
            let count = tally.of(verdict);
            let percent = count as f64 * 100.0 / tally.packets.max(1) as f64;
            writeln!(out, "  {verdict:<8} {count:>12} {percent:>6.1}%")?;
        }
        redirects.write_text(out)?;
        if tally.unknown > 0 {
            writeln!(out, "  of the aborted, {} returned no verdict but another number", tally.unknown)?;
        }
        if let Some(EventCount { written, lost, left_out }) = events {
            writeln!(out, "  events   {written:>12}")?;
            if *left_out > 0 {
                writeln!(
                    out,
                    "  left out {left_out:>12}        events without a packet: captures have no place for them"
                )?;
            }
            if *lost > 0 {
                writeln!(out, "  lost     {lost:>12}        ring buffers were full")?;
            }
        }
        match reasons {
            Some(reasons) => write_reasons(out, reasons),
            None => Ok(()),
        }
    }

    fn serialize<M: SerializeMap>(&self, object: &mut M) -> Result<(), M::Error> {
        let Self { tally, time, interrupted, events, redirects, reasons } = self;
        object.serialize_entry("packets", &tally.packets)?;
        object.serialize_entry("bytes", &tally.bytes)?;
        object.serialize_entry("seconds", &time.as_secs_f64())?;
        object.serialize_entry("verdicts", &Verdicts(tally))?;
        object.serialize_entry("unknown_verdicts", &tally.unknown)?;
        object.serialize_entry("redirects", &redirects.to_json())?;
        if let Some(EventCount { written, lost, left_out }) = events {
            let events = serde_json::json!({ "written": written, "lost": lost, "left_out": left_out });
            object.serialize_entry("events", &events)?;
        }
        if *interrupted {
            object.serialize_entry("interrupted", interrupted)?;
        }
        if let Some(reasons) = reasons {
            object.serialize_entry("reasons", &reasons::to_json(reasons))?;
        }
        Ok(())
    }
}

/// A run of a chain with the names for its report.
pub(super) struct ChainReport<'a> {
    pub(super) run: Run,
    pub(super) chain: &'a Loaded,
    pub(super) layout: Layout,
    pub(super) capture: &'a str,
    pub(super) engine: Engine,
    pub(super) status: Option<Status>,
    pub(super) traces: Option<&'a Tracer>,
    /// Whether the maps are wanted.
    pub(super) maps: bool,
    /// Whether it is of a chain file.
    pub(super) is_file: bool,
    /// The failure that ended the run early.
    pub(super) error: Option<&'a Failure>,
}

impl<'a> ChainReport<'a> {
    /// The object and its maps, where it is the only one: told as those of a single program are, whatever else is told.
    fn only_part(&self) -> Option<&'a Part> {
        match self.chain.parts.as_slice() {
            [only] if !self.is_file => Some(only),
            _ => None,
        }
    }
}

impl report::Report for ChainReport<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(traces) = self.traces {
            write_traces(out, traces)?;
        }
        let names: Vec<_> = self.layout.names.iter().map(|name| console::shown(name)).collect();
        let what = format!("{}: {}", self.chain.name, names.join(", "));
        self.run.write_text(out, &what, self.capture, self.error.is_some())?;
        if let Some(status) = &self.status {
            writeln!(out)?;
            write_status(out, status)?;
        }
        for part in self.chain.parts.iter().filter(|part| self.maps && !part.collection.maps().is_empty()) {
            if self.only_part().is_none() {
                writeln!(out, "\nmaps of {}:", part.name)?;
            }
            maps::write_text(out, &part.collection)?;
        }
        Ok(())
    }
}

impl Serialize for ChainReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        if let (Some(part), [program]) = (self.only_part(), self.layout.names.as_slice()) {
            object.serialize_entry("object", &part.name)?;
            object.serialize_entry("program", program)?;
        }
        object.serialize_entry("chain", &LayoutAsJson(&self.layout))?;
        object.serialize_entry("capture", self.capture)?;
        object.serialize_entry("engine", self.engine.name())?;
        self.run.serialize(&mut object)?;
        if let Some(status) = &self.status {
            object.serialize_entry("status", &StatusAsJson(status))?;
        }
        if let Some(traces) = self.traces {
            object.serialize_entry("traces", &TracesAsJson(traces))?;
        }
        if let Some(part) = self.only_part().filter(|_| self.maps) {
            object.serialize_entry("maps", &MapsAsJson(&part.collection, Form::Both))?;
        } else if self.maps {
            let parts = self.chain.parts.iter();
            let maps: Vec<_> =
                parts.map(|part| (&part.name, MapsAsJson(&part.collection, Form::Both))).collect();
            object.serialize_entry("maps", &ByObject(&maps))?;
        }
        if let Some(error) = self.error {
            object.serialize_entry("error", &error.to_string())?;
        }
        object.end()
    }
}

/// Maps by the names of their objects.
struct ByObject<'a>(&'a [(&'a String, MapsAsJson<'a>)]);

impl Serialize for ByObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, maps)| (name, maps)))
    }
}

/// A run with the names for its report.
pub(super) struct Report<'a> {
    pub(super) run: Run,
    pub(super) object: &'a str,
    pub(super) program: &'a str,
    pub(super) capture: &'a str,
    pub(super) engine: Engine,
    /// The maps, where they are wanted.
    pub(super) maps: Option<&'a Collection>,
    /// The failure that ended the run early.
    pub(super) error: Option<&'a Failure>,
}

impl report::Report for Report<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { object, program, capture, .. } = self;
        self.run.write_text(out, &format!("{object}: {program}"), capture, self.error.is_some())?;
        self.maps.map_or(Ok(()), |collection| maps::write_text(out, collection))
    }
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("object", self.object)?;
        object.serialize_entry("program", self.program)?;
        object.serialize_entry("capture", self.capture)?;
        object.serialize_entry("engine", self.engine.name())?;
        self.run.serialize(&mut object)?;
        if let Some(collection) = self.maps {
            object.serialize_entry("maps", &MapsAsJson(collection, Form::Both))?;
        }
        if let Some(error) = self.error {
            object.serialize_entry("error", &error.to_string())?;
        }
        object.end()
    }
}

/// The packets of each verdict, by its name.
struct Verdicts<'a>(&'a Tally);

impl Serialize for Verdicts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Verdict::ALL.iter().map(|&verdict| (verdict.name(), self.0.of(verdict))))
    }
}
