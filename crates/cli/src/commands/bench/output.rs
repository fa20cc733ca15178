//! Results as text and JSON.

use std::io::{self, Write};

use paceline::measure::{Comparison, Ratio, Summary};
use serde_json::{Value as Json, json};

use crate::common::console::shown;
use crate::measure::Hot;

/// One measurement of all contenders.
pub(super) struct Measured {
    /// `in bursts`, `alone`, `cold`, a verdict, `kernel`, or `beside the kernel`.
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
    /// The lines that the instructions are spent on, if that is asked for.
    pub(super) hot: Option<Hot>,
}

/// Most lines that the text shows.
const LINES: usize = 15;

pub(super) struct Report {
    pub(super) subjects: Vec<Subject>,
    pub(super) capture: String,
    pub(super) packets: usize,
    pub(super) rounds: u32,
    pub(super) measured: Vec<Measured>,
    /// Signs that the machine was busy, in words.
    pub(super) busy: Vec<String>,
}

impl Report {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, subject) in self.subjects.iter().enumerate() {
            let label = if number == 0 { "" } else { "against " };
            let Subject { name, engine, instructions, native, .. } = subject;
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
                writeln!(out, "  {}", ratio.in_words())?;
            }
        }
        self.busy.iter().try_for_each(|busy| writeln!(out, "{busy}"))?;
        self.subjects.iter().try_for_each(|subject| write_hot(out, subject))
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
            "busy": self.busy,
            "subjects": self.subjects.iter().map(|subject| json!({
                "name": subject.name,
                "engine": subject.engine,
                "instructions": subject.instructions,
                "native_bytes": subject.native,
                "lines": subject.hot.as_ref().map(hot_to_json),
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

fn hot_to_json(hot: &Hot) -> Json {
    let lines = hot.lines.iter().map(|line| {
        json!({ "place": line.place, "text": line.text, "instructions": line.instructions, "share": line.share })
    });
    lines.collect()
}

/// Writes where the instructions are spent.
fn write_hot(out: &mut dyn Write, subject: &Subject) -> io::Result<()> {
    let Some(hot) = &subject.hot else { return Ok(()) };
    let name = shown(&subject.name);
    writeln!(out, "instructions of {name} by line (counts of the plain interpreter, no times)")?;
    for line in hot.lines.iter().take(LINES) {
        let (share, each, place) = (100.0 * line.share, line.instructions, shown(&line.place));
        writeln!(out, "{share:>6.1}%{each:>9.1}  {place:24} {}", shown(&line.text))?;
    }
    if let Some(more) = hot.lines.get(LINES..).filter(|more| !more.is_empty()) {
        let share: f64 = more.iter().map(|line| line.share).sum();
        writeln!(out, "{:>6.1}%           in {} more lines", 100.0 * share, more.len())?;
    }
    if hot.without_line > 0.0 {
        writeln!(out, "{:>6.1}%           without a line", 100.0 * hot.without_line)?;
    }
    Ok(())
}
