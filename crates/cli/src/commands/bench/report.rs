//! Results as text and JSON.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::statistics::{Comparison, Ratio, Summary};
use crate::common::console::shown;

/// One measurement of all contenders.
pub(super) struct Measured {
    /// `in bursts`, `alone`, `cold`, or a verdict.
    pub(super) what: String,
    pub(super) packets: usize,
    /// By contender.
    pub(super) summaries: Vec<Summary>,
    /// Of the first contender to the second.
    pub(super) ratio: Option<Ratio>,
}

/// A program and what is known of it without a clock.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) engine: &'static str,
    /// Mean number of instructions of a packet, of all programs that run.
    pub(super) instructions: f64,
    /// Bytes of native code of all programs, on an engine that makes some.
    pub(super) native: Option<usize>,
}

pub(super) struct Report {
    pub(super) subjects: Vec<Subject>,
    pub(super) capture: String,
    pub(super) packets: usize,
    pub(super) rounds: u32,
    pub(super) measured: Vec<Measured>,
}

impl Report {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, subject) in self.subjects.iter().enumerate() {
            let label = if number == 0 { "" } else { "against " };
            let Subject { name, engine, instructions, native } = subject;
            let native = native.map_or_else(String::new, |bytes| format!(", {bytes} bytes of native code"));
            let name = shown(name);
            writeln!(out, "{label}{name} on {engine}, {instructions:.1} instructions a packet{native}")?;
        }
        let Self { packets, capture, rounds, .. } = self;
        writeln!(out, "{packets} packets of {}, {rounds} rounds; nanoseconds a packet", shown(capture))?;
        writeln!(out, "{:22}{:>10}{:>10}{:>10}", "", "minimum", "median", "p99")?;
        for measured in &self.measured {
            for (number, summary) in measured.summaries.iter().enumerate() {
                let what = if number == 0 { measured.what.as_str() } else { "  the other" };
                let Summary { min, median, p99 } = summary;
                writeln!(out, "{what:22}{min:>10.1}{median:>10.1}{p99:>10.1}")?;
            }
            if let Some(ratio) = &measured.ratio {
                writeln!(out, "  {}", in_words(ratio))?;
            }
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Json {
        let summary = |s: &Summary| json!({ "min_ns": s.min, "median_ns": s.median, "p99_ns": s.p99 });
        let ratio = |ratio: &Ratio| {
            json!({
                "median": ratio.median,
                "low": ratio.low,
                "high": ratio.high,
                "comparison": match ratio.comparison() {
                    Comparison::Faster => "faster",
                    Comparison::Slower => "slower",
                    Comparison::Equal => "equal",
                },
            })
        };
        let mut all = json!({
            "capture": self.capture,
            "packets": self.packets,
            "rounds": self.rounds,
            "subjects": self.subjects.iter().map(|subject| json!({
                "name": subject.name,
                "engine": subject.engine,
                "instructions": subject.instructions,
                "native_bytes": subject.native,
            })).collect::<Vec<_>>(),
        });
        for measured in &self.measured {
            let mut one = measured.summaries.first().map_or(Json::Null, summary);
            one["packets"] = measured.packets.into();
            one["against"] = measured.summaries.get(1).map_or(Json::Null, summary);
            one["ratio"] = measured.ratio.as_ref().map_or(Json::Null, ratio);
            let key = measured.what.trim_start_matches("in ").replace(' ', "_");
            all[key.as_str()] = one;
        }
        all
    }
}

fn in_words(ratio: &Ratio) -> String {
    let Ratio { median, low, high } = *ratio;
    match ratio.comparison() {
        Comparison::Faster => {
            format!("{:.2} times as fast ({:.2} to {:.2})", 1.0 / median, 1.0 / high, 1.0 / low)
        }
        Comparison::Slower => format!("{median:.2} times as long ({low:.2} to {high:.2})"),
        Comparison::Equal => format!("no difference beyond noise (ratio {low:.2} to {high:.2})"),
    }
}
