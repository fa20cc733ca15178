//! The fate of each packet, written to a file.

use paceline::with_causes;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use paceline::capture::{AnnotatedWriter, LinkType, Notes, WriteError};
use paceline::explain::{ChainExplainer, ChainExplanation, Reasons};
use paceline::packet::{Difference, differences, to_line};
use paceline::{Arrival, Burst, BurstFault, FrameMeta, Host, Outcome, RanAs, Runner};
use serde_json::{Value as Json, json};

use crate::common::failure::{CommandError, Failure};
use crate::common::line::PacketLine;
use crate::common::outcome;

/// Verdicts cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
struct VerdictsError {
    name: String,
    source: LogError,
}

/// The reason why a log cannot be written.
#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Text(#[from] io::Error),
    #[error(transparent)]
    Capture(#[from] WriteError),
}

impl CommandError for VerdictsError {
    fn is_closed_pipe(&self) -> bool {
        match &self.source {
            LogError::Text(error) => error.kind() == io::ErrorKind::BrokenPipe,
            LogError::Capture(error) => matches!(error, WriteError::BrokenPipe),
        }
    }
}

/// The file of verdicts, in the form that its name asks for.
enum Form {
    /// A JSON object in each line.
    Lines(BufWriter<File>),
    Csv(BufWriter<File>),
    /// A line for people in the form of tcpdump.
    Print(BufWriter<File>),
    /// Packets as they came out, with the rest in their comments.
    Capture(Box<AnnotatedWriter<BufWriter<File>>>, u32),
}

/// Writes a line for each packet.
pub(super) struct VerdictLog {
    form: Form,
    name: String,
    packets: u64,
    /// Time of the last packet.
    last_ns: u64,
    failed: Option<LogError>,
}

/// A packet before and after the program.
struct Entry<'a> {
    number: u64,
    before: &'a [u8],
    meta: FrameMeta,
    outcome: Outcome,
    ran: RanAs,
    /// The program of a chain that ended it, the place that decided, and the sentence.
    why: Option<&'a Why>,
}

/// An explanation in short.
#[derive(Default)]
struct Why {
    program: String,
    file: Option<String>,
    line: Option<u32>,
    sentence: String,
}

const COLUMNS: &str = "packet,time_ns,verdict,redirect,program,file,line,why,changed,returns,context";

impl VerdictLog {
    pub(super) fn new(path: &Path, (file, name): (File, String)) -> Result<Self, Failure> {
        let mut out = BufWriter::new(file);
        let failed = |source: LogError| VerdictsError { name: name.clone(), source };
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("pcapng") => {
                let mut writer =
                    AnnotatedWriter::new(out, "paceline").map_err(|error| failed(error.into()))?;
                let interface = writer.add_interface("run", LinkType::ETHERNET);
                let interface = interface.map_err(|error| failed(error.into()))?;
                Form::Capture(Box::new(writer), interface)
            }
            Some("csv") => {
                writeln!(out, "{COLUMNS}").map_err(|error| failed(error.into()))?;
                Form::Csv(out)
            }
            _ => Form::Lines(out),
        };
        Ok(Self { form, name, packets: 0, last_ns: 0, failed: None })
    }

    /// Lines for people.
    pub(super) fn print((file, name): (File, String)) -> Self {
        Self { form: Form::Print(BufWriter::new(file)), name, packets: 0, last_ns: 0, failed: None }
    }

    fn write(&mut self, entry: &Entry<'_>) -> Result<(), LogError> {
        match &mut self.form {
            Form::Lines(out) => Ok(writeln!(out, "{}", entry.to_json())?),
            Form::Csv(out) => Ok(writeln!(out, "{}", entry.to_csv())?),
            Form::Print(out) => Ok(writeln!(out, "{}", entry.to_line())?),
            Form::Capture(out, interface) => {
                let FrameMeta { timestamp_ns, original_len, .. } = entry.meta;
                let comment = entry.comment();
                let notes = Notes {
                    comment: &comment,
                    packet_id: Some(entry.number),
                    queue: None,
                    verdict: Some(entry.outcome.verdict as u64),
                };
                let bytes = entry.outcome.bytes.as_slice();
                let original_len = original_len.max(bytes.len() as u32);
                Ok(out.push(*interface, timestamp_ns, bytes, original_len, &notes)?)
            }
        }
    }

    fn add(&mut self, entry: &Entry<'_>) {
        self.packets += 1;
        self.last_ns = entry.meta.timestamp_ns;
        if self.failed.is_none()
            && let Err(error) = self.write(entry)
        {
            self.failed = Some(error);
        }
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Self { form, name, failed, last_ns, .. } = self;
        let flushed = |mut out: BufWriter<File>| out.flush().map_err(LogError::from);
        let done = match (failed, form) {
            (Some(error), _) => Err(error),
            (None, Form::Lines(out) | Form::Csv(out) | Form::Print(out)) => flushed(out),
            (None, Form::Capture(out, _)) => out.finish(last_ns, 0).map_err(LogError::from),
        };
        Ok(done.map_err(|source| VerdictsError { name, source })?)
    }
}

/// Writes the verdicts of another runner's packets.
pub(super) struct Logging<R> {
    pub(super) runner: R,
    /// How outcomes are read.
    pub(super) ran: RanAs,
    /// Packets that are logged come one by one.
    pub(super) logs: Vec<VerdictLog>,
    pub(super) explaining: Option<Explaining>,
}

/// Explains each packet before it runs; they come one by one.
pub(super) struct Explaining {
    pub(super) explainer: ChainExplainer,
    pub(super) reasons: Reasons,
    packets: u64,
}

impl Explaining {
    pub(super) fn new(explainer: ChainExplainer) -> Self {
        Self { explainer, reasons: Reasons::default(), packets: 0 }
    }
}

impl<R: Runner> Runner for Logging<R> {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let why = self.explaining.as_mut().map(|explaining| explain(explaining, burst, host));
        if self.logs.is_empty() {
            return self.runner.run_burst(burst, host);
        }
        let before = burst.frame(0).packet().to_vec();
        self.runner.run_burst(burst, host)?;
        let (frame, meta) = (burst.frame(0), *burst.frame(0).meta());
        let outcome = Outcome::of(frame, host, self.ran, None);
        let number = 1 + self.logs.first().map_or(0, |log| log.packets);
        let entry = Entry { number, before: &before, meta, outcome, ran: self.ran, why: why.as_ref() };
        for log in &mut self.logs {
            log.add(&entry);
        }
        Ok(())
    }

    fn keeps_bytes(&self) -> bool {
        self.runner.keeps_bytes()
    }
}

/// Explains the only packet of a burst.
fn explain(explaining: &mut Explaining, burst: &Burst, host: &mut Host) -> Why {
    let frame = burst.frame(0);
    let explanation = explaining.explainer.rehearse(&Arrival::of_frame(&frame, host.arriving()), host);
    explaining.packets += 1;
    if let Ok(explanation) = &explanation {
        explaining.reasons.add(explaining.packets, explanation);
    }
    // The explainer has told the host of its own copy of the packet.
    host.arrive(burst);
    match explanation {
        Ok(explanation) => Why::of(&explanation),
        Err(error) => Why { sentence: format!("not explained: {}", with_causes(&error)), ..Why::default() },
    }
}

impl Why {
    fn of(chain: &ChainExplanation) -> Self {
        let last = chain.steps.last().map(|(_, explanation, _)| explanation);
        let at = last.map(|last| last.decided_at());
        let line = last.zip(at).and_then(|(last, at)| last.line(at));
        let program = last.zip(at).and_then(|(last, at)| last.programs.get(at.program));
        Self {
            program: program.map_or_else(String::new, |program| program.name.clone()),
            file: line.map(|line| line.file.to_string()),
            line: line.map(|line| line.line),
            sentence: chain.sentence(),
        }
    }
}

impl Entry<'_> {
    fn redirect(&self) -> Option<String> {
        self.outcome.redirect.map(outcome::target)
    }

    fn changes(&self) -> Vec<Difference> {
        if self.before == self.outcome.bytes {
            Vec::new()
        } else {
            differences(self.before, &self.outcome.bytes)
        }
    }

    fn to_json(&self) -> Json {
        let change = |change: &Difference| json!({ "field": change.name, "before": change.before, "after": change.after });
        let mut line = serde_json::Map::new();
        line.insert("packet".to_owned(), self.number.into());
        line.insert("time_ns".to_owned(), self.meta.timestamp_ns.into());
        line.extend(outcome::to_json(&self.outcome, self.ran));
        let changes: Vec<_> = self.changes().iter().map(change).collect();
        line.insert("changed".to_owned(), changes.into());
        if let Some(why) = self.why {
            line.insert("program".to_owned(), why.program.as_str().into());
            line.insert("file".to_owned(), why.file.clone().into());
            line.insert("line".to_owned(), why.line.into());
            line.insert("why".to_owned(), why.sentence.as_str().into());
        }
        Json::Object(line)
    }

    fn to_csv(&self) -> String {
        let why = self.why;
        let changes = self.changes().into_iter().map(|change| change_in_words(&change));
        [
            self.number.to_string(),
            self.meta.timestamp_ns.to_string(),
            self.outcome.verdict.name().to_owned(),
            self.redirect().unwrap_or_default(),
            why.map_or_else(String::new, |why| why.program.clone()),
            why.and_then(|why| why.file.clone()).unwrap_or_default(),
            why.and_then(|why| why.line).map_or_else(String::new, |line| line.to_string()),
            why.map_or_else(String::new, |why| why.sentence.clone()),
            changes.collect::<Vec<_>>().join("; "),
            outcome::number(self.outcome.returned, self.ran).to_string(),
            self.outcome.context.as_ref().map_or_else(String::new, |context| {
                context.members().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            }),
        ]
        .map(|cell| csv_cell(&cell))
        .join(",")
    }

    /// The packet as it came in, with its target, what the program changed, and the sentence.
    fn to_line(&self) -> String {
        let to = self.redirect().map(|target| format!("to {target}"));
        let changes = self.changes().into_iter().map(|change| change_in_words(&change));
        let why = self.why.map(|why| why.sentence.clone());
        let more: Vec<_> = to.into_iter().chain(changes).chain(why).collect();
        let line = PacketLine {
            number: Some(self.number),
            time_ns: self.meta.timestamp_ns,
            verdict: Some(self.outcome.verdict.name()),
            headers: &to_line(self.before),
            more: &more.join("; "),
        };
        line.to_string()
    }

    /// Comment of the packet in a capture.
    fn comment(&self) -> String {
        let verdict = self.outcome.verdict.name();
        let to = self.redirect().map_or_else(String::new, |target| format!(" to {target}"));
        let why = self.why.map_or_else(String::new, |why| format!(": {}", why.sentence));
        format!("packet {}: {verdict}{to}{why}", self.number)
    }
}

fn change_in_words(change: &Difference) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{} {} -> {}", change.name, value(&change.before), value(&change.after))
}

/// A cell as RFC 4180 has it.
fn csv_cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::csv_cell;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(csv_cell("a b"), "a b");
        assert_eq!(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
