//! Traces: the changes of each program of a chain to selected packets.

use std::io::{self, Write};

use paceline::chain::{MAX_RUNS, Next};
use paceline::{Burst, BurstFault, ChainWorker, Host, Layout, Runner, Trace, TraceStep, Verdict, trace};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::show::{name, target};
use crate::common::packets::Packets;

/// Bytes of a change that are shown on a line.
const SHOWN: usize = 16;

/// A packet's way through the chain.
struct Traced {
    packet: u64,
    trace: Trace,
    /// The chain that ran it.
    layout: Layout,
}

/// Runs bursts, and traces the packets that are asked for.
pub(crate) struct Tracer {
    worker: ChainWorker,
    wanted: Packets,
    /// Packets so far.
    packets: u64,
    traces: Vec<Traced>,
}

impl Tracer {
    pub(crate) fn new(worker: ChainWorker, wanted: Packets) -> Self {
        Self { worker, wanted, packets: 0, traces: Vec::new() }
    }
}

impl Runner for Tracer {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let first = self.packets + 1;
        self.packets += burst.len() as u64;
        if !(first..=self.packets).any(|packet| self.wanted.contains(packet)) {
            return self.worker.run_burst(burst, host);
        }
        self.worker.refresh(host);
        for index in 0..burst.len() {
            // One by one, also the packets that are not wanted: they stay in order.
            let trace = trace(self.worker.parts(), &mut burst.frame_mut(index), host)
                .map_err(|fault| BurstFault::at(burst, index, fault))?;
            let packet = first + index as u64;
            if self.wanted.contains(packet) {
                self.traces.push(Traced { packet, trace, layout: self.worker.layout().clone() });
            }
        }
        Ok(())
    }
}

pub(crate) fn write_text(out: &mut dyn Write, tracer: &Tracer) -> io::Result<()> {
    let plural = if tracer.packets == 1 { "" } else { "s" };
    write_traces(out, tracer)?;
    match tracer.wanted.beyond(tracer.packets) {
        Some(packet) => {
            writeln!(out, "packet {packet}: there is none, {} packet{plural} ran", tracer.packets)
        }
        None => Ok(()),
    }
}

fn write_traces(out: &mut dyn Write, tracer: &Tracer) -> io::Result<()> {
    for Traced { packet, trace, layout } in &tracer.traces {
        let bytes = trace.steps.first().map_or(0, |first| first.before.data.len());
        writeln!(out, "packet {packet}: {bytes} bytes")?;
        for step in &trace.steps {
            let code = step.step.code;
            let returned = Verdict::from_code(code).map_or_else(|| code.to_string(), |v| v.name().to_owned());
            let next = match step.step.next {
                Next::End(end) if end.name() == returned => String::new(),
                next => format!(" -> {}", target(layout, next)),
            };
            writeln!(out, "  {}: {returned}{next}", name(layout, step.step.node))?;
            write_changes(out, step)?;
        }
        match trace.is_overrun() {
            true => writeln!(out, "  {}: {MAX_RUNS} programs ran, and one more would have", trace.verdict)?,
            false => writeln!(out, "  {}", trace.verdict)?,
        }
    }
    Ok(())
}

fn write_changes(out: &mut dyn Write, step: &TraceStep) -> io::Result<()> {
    let moved = step.head_moved();
    if moved != 0 {
        let what = if moved < 0 { "added" } else { "removed" };
        writeln!(out, "    {} bytes {what} at the front", moved.unsigned_abs())?;
        let front = step.after.data.get(..moved.unsigned_abs()).filter(|_| moved < 0);
        front.map_or(Ok(()), |bytes| write_bytes(out, 0, None, bytes))?;
    }
    let (before, after) = (step.before.data.len().cast_signed() - moved, step.after.data.len().cast_signed());
    if after != before {
        let what = if after > before { "added" } else { "removed" };
        writeln!(out, "    {} bytes {what} at the end", after.abs_diff(before))?;
    }
    for (offset, old, new) in step.changes() {
        write_bytes(out, offset, Some(&old), &new)?;
    }
    if step.before.metadata != step.after.metadata {
        writeln!(out, "    metadata {} -> {}", hex(&step.before.metadata), hex(&step.after.metadata))?;
    }
    Ok(())
}

/// Lines like `0x000e: 45 00 -> 46 00`.
fn write_bytes(out: &mut dyn Write, offset: usize, old: Option<&[u8]>, new: &[u8]) -> io::Result<()> {
    for (line, chunk) in new.chunks(SHOWN).enumerate() {
        let start = line * SHOWN;
        write!(out, "    {:#06x}: ", offset + start)?;
        if let Some(old) = old.and_then(|old| old.get(start..start + chunk.len())) {
            write!(out, "{} -> ", hex(old))?;
        }
        writeln!(out, "{}", hex(chunk))?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "none".to_owned(),
        bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// As `--json` has it.
pub(crate) struct TracesAsJson<'a>(pub(crate) &'a Tracer);

impl Serialize for TracesAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.traces.iter().map(traced))
    }
}

fn traced(traced: &Traced) -> Json {
    let steps: Vec<Json> = traced.trace.steps.iter().map(|step| of(&traced.layout, step)).collect();
    json!({
        "packet": traced.packet,
        "verdict": traced.trace.verdict.name(),
        "overrun": traced.trace.is_overrun(),
        "programs": steps,
    })
}

fn of(layout: &Layout, step: &TraceStep) -> Json {
    let next = match step.step.next {
        Next::Program(node) => json!({ "program": layout.names.get(node.index()) }),
        Next::End(verdict) => json!({ "end": verdict.name() }),
    };
    let plain = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let change = |(offset, old, new): (usize, Vec<u8>, Vec<u8>)| json!({ "offset": offset, "old": plain(&old), "new": plain(&new) });
    json!({
        "name": layout.names.get(step.step.node.index()),
        "returned": step.step.code,
        "verdict": Verdict::from_code(step.step.code).map(Verdict::name),
        "next": next,
        "length": [step.before.data.len(), step.after.data.len()],
        "head_moved": step.head_moved(),
        "changes": step.changes().into_iter().map(change).collect::<Vec<_>>(),
        "metadata": [plain(&step.before.metadata), plain(&step.after.metadata)],
    })
}
