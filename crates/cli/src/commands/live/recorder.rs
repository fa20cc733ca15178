//! Captures of a live run: packets with what became of them, as pcapng.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::control::Capture;
use paceline::capture::{AnnotatedWriter, LinkType, Notes, WriteError};
use paceline::filter::{ConvertOptions, Filter, PacketFilter, Purpose, Rules, SockFilter};
use paceline::packet::to_line;
use paceline::{Burst, Engine, FrameMeta, Host, Observed, Observer, Pipeline, RedirectTarget, with_causes};

use super::report::PortNames;
use crate::common::line::PacketLine;

/// Packets that wait to be recorded.
const WAITING: usize = 4096;
/// Size of the buffer before the output, in bytes.
const BUFFER: usize = 1 << 16;
/// Time between two looks whether the capture is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Packets to record, and their number.
#[derive(Default)]
pub(super) struct Wanted {
    filter: Option<PacketFilter>,
    count: Option<u64>,
    time: Option<Duration>,
}

impl Wanted {
    pub(super) fn of(request: &Capture) -> Result<Self, String> {
        let filter = request.filter.clone().map(filter).transpose()?;
        Ok(Self { filter, count: request.count, time: request.time })
    }
}

fn filter(insns: Vec<SockFilter>) -> Result<PacketFilter, String> {
    let filter = Filter::new(insns, Purpose::UserSpace)
        .map_err(|error| format!("`filter`: {}", with_causes(&error)))?;
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    PacketFilter::new("filter", filter, &options, Engine::Threaded)
        .map_err(|error| format!("`filter`: {}", with_causes(&error)))
}

/// A capture that is being made.
pub(super) struct Recorder {
    observer: Observer,
    /// Interface numbers and names of the ports.
    ports: Vec<(u32, String)>,
    wanted: Wanted,
    host: Host,
    burst: Burst,
}

impl Recorder {
    /// Observes from now on.
    pub(super) fn new(pipeline: &Pipeline, ports: &PortNames, wanted: Wanted) -> Self {
        let observer = pipeline.observe(WAITING);
        Self { observer, ports: ports.numbers(), wanted, host: Host::default(), burst: Burst::new(1) }
    }

    /// Writes a capture until as many packets are in it as are wanted, the time is over, or `is_over` says so; then those that wait.
    pub(super) fn record(mut self, out: impl Write, is_over: impl Fn() -> bool) -> Result<(), WriteError> {
        let application = concat!("paceline ", env!("CARGO_PKG_VERSION"));
        let mut writer = AnnotatedWriter::new(BufWriter::with_capacity(BUFFER, out), application)?;
        let mut interfaces = Vec::new();
        for (number, name) in &self.ports {
            interfaces.push((*number, writer.add_interface(name, LinkType::ETHERNET)?));
        }
        let (start, mut packets) = (Instant::now(), 0);
        while self.wanted.count.is_none_or(|count| packets < count) {
            let is_over = is_over() || self.wanted.time.is_some_and(|time| start.elapsed() >= time);
            match self.observer.next(if is_over { Duration::ZERO } else { LOOK }) {
                Some(observed) if self.wants(&observed) => {
                    packets += 1;
                    let interface = match interfaces.iter().find(|(number, _)| *number == observed.ifindex) {
                        Some((_, interface)) => *interface,
                        // A port that was opened again.
                        None => {
                            let name = format!("interface {}", observed.ifindex);
                            let interface = writer.add_interface(&name, LinkType::ETHERNET)?;
                            interfaces.push((observed.ifindex, interface));
                            interface
                        }
                    };
                    write(&mut writer, interface, packets, &observed)?;
                }
                Some(_) => {}
                None if is_over => break,
                // A reader on the other end of a pipe sees what has come.
                None => writer.flush()?,
            }
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        writer.finish(now.as_nanos() as u64, self.observer.lost())
    }

    /// Prints a line for each packet until `is_over` says so, then those that wait; returns how many were left out.
    pub(super) fn print(self, out: impl Write, is_over: impl Fn() -> bool) -> io::Result<u64> {
        let mut out = BufWriter::with_capacity(BUFFER, out);
        let mut packets = 0;
        loop {
            let is_over = is_over();
            match self.observer.next(if is_over { Duration::ZERO } else { LOOK }) {
                Some(observed) => {
                    packets += 1;
                    let line = PacketLine {
                        number: Some(packets),
                        time_ns: observed.timestamp_ns,
                        verdict: Some(observed.verdict.name()),
                        headers: &to_line(&observed.before),
                        more: &circumstances(&observed),
                    };
                    writeln!(out, "{line}")?;
                }
                None if is_over => break,
                None => out.flush()?,
            }
        }
        out.flush()?;
        Ok(self.observer.lost())
    }

    fn wants(&mut self, observed: &Observed) -> bool {
        let Some(filter) = &self.wanted.filter else { return true };
        self.burst.clear();
        let meta = FrameMeta { original_len: observed.original_len, ..FrameMeta::default() };
        let _ = self.burst.push(&observed.before, meta);
        filter.matches(&mut self.burst, &mut self.host).is_ok_and(|matched| matched != 0)
    }
}

/// Writes a packet as it was, and as it is, if that is not the same.
fn write<W: Write>(
    writer: &mut AnnotatedWriter<W>,
    interface: u32,
    id: u64,
    observed: &Observed,
) -> Result<(), WriteError> {
    let Observed { timestamp_ns, original_len, before, after, verdict, .. } = observed;
    let outcome = outcome(observed);
    let notes = Notes {
        comment: &outcome,
        packet_id: Some(id),
        queue: Some(observed.queue.into()),
        verdict: Some(*verdict as u64),
    };
    let Some(after) = after else {
        return writer.push(interface, *timestamp_ns, before, *original_len, &notes);
    };
    let comment = format!("before: {outcome}");
    writer.push(interface, *timestamp_ns, before, *original_len, &Notes { comment: &comment, ..notes })?;
    let comment = format!("after: {outcome}");
    writer.push(interface, *timestamp_ns, after, after.len() as u32, &Notes { comment: &comment, ..notes })
}

/// `drop by firewall, last branch firewall.bpf.c:88`, `redirect to interface 3 by balancer, ...`.
fn outcome(observed: &Observed) -> String {
    let circumstances = circumstances(observed);
    let separator = if circumstances.is_empty() { "" } else { " " };
    format!("{}{separator}{circumstances}", observed.verdict)
}

/// The same without the verdict.
fn circumstances(observed: &Observed) -> String {
    let target = match observed.redirect.as_ref().map(|redirect| &redirect.target) {
        None => Cow::Borrowed(""),
        Some(RedirectTarget::Interface { ifindex }) => format!("to interface {ifindex} ").into(),
        Some(RedirectTarget::Map { key, .. }) => format!("to entry {key} of a map ").into(),
    };
    let program = observed.program.as_ref().map(|program| format!("{target}by {program}"));
    let branch = observed.branch.as_ref().map(|branch| format!("last branch {branch}"));
    let program = program.unwrap_or_else(|| target.trim_end().to_owned());
    let parts: Vec<_> =
        [Some(program), branch].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Records to a file until `ending` is set.
pub(super) fn record_file(recorder: Recorder, file: &File, ending: &AtomicBool) -> Result<(), WriteError> {
    recorder.record(file, || ending.load(Ordering::Relaxed))
}
