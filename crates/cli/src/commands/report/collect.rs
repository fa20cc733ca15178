//! The data of the page.

use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;

use paceline::capture::CaptureReader;
use paceline::chain::{Drawing, svg};
use paceline::coverage::{Counting, Report as Coverage};
use paceline::explain::ChainExplanation;
use paceline::packet::{differences, to_text};
use paceline::scenario::SessionError;
use paceline::{Burst, Engine, FrameMeta, Host, Verdict};
use serde_json::{Value as Json, json};

use super::args::ReportArgs;
use super::flows::Flows;
use super::times;
use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::{Capture, CaptureError, CapturedPacket};
use crate::common::failure::{CommandError, Failure};
use crate::common::files::Taken;
use crate::object::Opener;
use crate::session::Session;
use crate::sides::{Differences, Found, Side, SideArgs, SideMaker, find};
use crate::subject::Subject;
use crate::world::World;

/// Packets of each reason that the page lists, and of all.
const OF_REASON: usize = 40;
const LISTED: usize = 5_000;

/// Most packets that are kept to be explained.
const MOST: usize = 1 << 20;

/// Parts of the time that the capture took.
const BINS: usize = 120;

#[derive(Debug, thiserror::Error)]
#[error("packet {packet}")]
struct RunError {
    packet: usize,
    source: SessionError,
}

impl CommandError for RunError {}

/// A packet of the capture, and what became of it.
struct Seen {
    time_ns: u64,
    verdict: Verdict,
}

/// Data of the page.
pub(super) struct Inputs<'a> {
    args: &'a ReportArgs,
    world: World,
    capture: Capture,
    session: Session,
    /// The same programs with maps of their own, on the plain interpreter.
    explained: Subject,
    /// Programs that the page compares with, loaded, and those of the page themselves.
    sides: Option<[Side; 2]>,
}

/// Makers of both sides.
fn makers(args: &ReportArgs) -> Option<[SideMaker<'_>; 2]> {
    let both = SideArgs { object: &args.source.object, world: &args.world, unverified: false };
    let against = SourceArgs::of(vec![args.against.clone()?], args.source.object.clone());
    Some([args.source.clone(), against].map(|source| SideMaker::of(source, None, both)))
}

impl<'a> Inputs<'a> {
    pub(super) fn open(args: &'a ReportArgs) -> Result<Self, Failure> {
        let world = World::new(&args.world)?;
        let how = |engine, counting| LoadHow {
            engine,
            opener: Rc::new(Opener::new(&args.source.object).counting(counting).explaining(true)),
            ..LoadHow::of(&args.source.object)
        };
        let subject = Subject::load(&args.source, &how(Engine::best(), Some(Counting::Plain)))?.counted()?;
        let explained = Subject::load(&args.source, &how(Engine::Plain, None))?;
        let capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
        let mut session = Session::new(subject, &world);
        session.host().set_trace(std::io::sink());
        let sides =
            makers(args).map(|[old, new]| Ok::<_, Failure>([old.make()?, new.make()?])).transpose()?;
        Ok(Self { args, world, capture, session, explained, sides })
    }

    /// The files that the page may not replace.
    pub(super) fn taken(&self) -> Vec<Taken> {
        let capture = self.capture.file.clone();
        let against = self.sides.iter().flatten().flat_map(|side| side.subject().taken.clone());
        self.explained
            .taken
            .iter()
            .cloned()
            .chain(capture)
            .chain(against)
            .chain(self.args.world.file())
            .collect()
    }

    /// Runs the packets and collects the data of the page.
    pub(super) fn collect(self) -> Result<Json, Failure> {
        let Self { args, world, mut capture, mut session, explained, sides } = self;
        let (mut seen, mut kept, mut flows) = (Vec::new(), Vec::new(), Flows::default());
        let mut burst = Burst::new(1);
        let is_compared = sides.is_some() || args.bench;
        let most = if is_compared { MOST } else { args.explain.min(MOST) };
        loop {
            let failed = |source| {
                let (name, processed) = (capture.name.clone(), seen.len() as u64);
                CaptureError::Read { name, source: Box::new(source), processed }
            };
            if capture.reader.fill(&mut burst).map_err(failed)? == 0 {
                break;
            }
            let (bytes, meta) = (burst.frame(0).packet().to_vec(), *burst.frame(0).meta());
            let packet = world.origin().arrival(&bytes, meta);
            let number = seen.len() + 1;
            let verdict = session.run(&packet).map_err(|source| RunError { packet: number, source })?.verdict;
            drop(session.events());
            flows.add(&bytes, verdict);
            seen.push(Seen { time_ns: meta.timestamp_ns, verdict });
            if kept.len() < most {
                kept.push(CapturedPacket { bytes, meta });
            }
        }
        let diff = sides.map(|sides| compared(args, sides, &kept, &capture.name)).transpose()?;
        let bench = args.bench.then(|| times::of_rounds(args, &kept)).transpose()?;
        kept.truncate(args.explain);
        let chain = chain(&mut session.subject);
        let subject = &session.subject;
        let counts: Vec<_> = subject.parts.iter().flat_map(|(_, part)| part.coverage()).collect();
        let (packets, reasons) = explain(&explained, &kept, &world)?;
        Ok(json!({
            "subject": subject.name,
            "programs": subject.programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>(),
            "capture": capture.name,
            "verdicts": Verdict::ALL.map(Verdict::name),
            "counts": Verdict::ALL.map(|verdict| seen.iter().filter(|seen| seen.verdict == verdict).count()),
            "timeline": timeline(&seen),
            "sources": sources(&Coverage::new(&counts)),
            "flows": flows.to_json(),
            "explained": kept.len(),
            "reasons": reasons,
            "packets": packets,
            "chain": chain,
            "diff": diff,
            "bench": bench,
        }))
    }
}

/// The graph of a chain with the packets of its edges, as SVG.
fn chain(subject: &mut Subject) -> Option<String> {
    let edges = subject.edges();
    let names: Vec<_> = subject.programs.iter().map(|program| program.name.clone()).collect();
    let drawing = Drawing { graph: &subject.graph, names: &names, packets: Some(&edges) };
    subject.is_chain.then(|| svg(&drawing))
}

/// Differences between both sides.
fn compared(
    args: &ReportArgs,
    sides: [Side; 2],
    packets: &[CapturedPacket],
    capture: &str,
) -> Result<Json, Failure> {
    let Some([old, new]) = makers(args) else { return Ok(Json::Null) };
    let Found { groups, maps, .. } = find([&old, &new], sides, packets, &[])?;
    let (names, capture) = ([old.name(), new.name()], capture.to_owned());
    Ok(Differences { names, capture, packets: packets.len(), groups, maps }.to_json())
}

fn quiet(world: &World) -> Host {
    let mut host = world.host();
    host.set_trace(std::io::sink());
    host
}

/// Packets of each verdict in equal parts of the time.
fn timeline(seen: &[Seen]) -> Json {
    let first = seen.iter().map(|seen| seen.time_ns).min().unwrap_or(0);
    let last = seen.iter().map(|seen| seen.time_ns).max().unwrap_or(0);
    let mut bins = vec![[0_u64; Verdict::ALL.len()]; BINS];
    for Seen { time_ns, verdict } in seen {
        let share = (time_ns - first) as f64 / (last - first).max(1) as f64;
        let bin = bins.get_mut(((share * BINS as f64) as usize).min(BINS - 1));
        if let Some(count) = bin.and_then(|bin| bin.get_mut(*verdict as usize)) {
            *count += 1;
        }
    }
    json!({ "seconds": (last - first) as f64 / 1e9, "bins": bins })
}

/// Source files with the counts of their lines: whole where the file is there, else the lines with code.
fn sources(coverage: &Coverage) -> Json {
    let file = |(name, file): (&String, &paceline::coverage::FileReport)| {
        let totals = file.totals();
        let of = |number: u32, text: &str| match file.lines.get(&number) {
            Some(line) => json!([number, line.count, text, line.missing_sides().collect::<Vec<_>>()]),
            None => json!([number, null, text]),
        };
        let lines: Vec<Json> = match fs::read_to_string(name) {
            Ok(text) => (1..).zip(text.lines()).map(|(number, text)| of(number, text)).collect(),
            Err(_) => file.lines.iter().map(|(number, line)| of(*number, &line.text)).collect(),
        };
        json!({ "name": name, "lines": lines, "covered": totals.lines.0, "all": totals.lines.1 })
    };
    coverage.files.iter().map(file).collect()
}

/// A reason: what packets of it have in common.
struct Reason {
    count: usize,
    first: usize,
    sentence: String,
    listed: usize,
}

/// The packets that matter, and all reasons.
fn explain(
    subject: &Subject,
    kept: &[CapturedPacket],
    world: &World,
) -> Result<(Vec<Json>, Vec<Json>), Failure> {
    let (mut explainer, mut host) = (subject.explainer(), quiet(world));
    let mut reasons: BTreeMap<(&str, String), Reason> = BTreeMap::new();
    let mut packets = Vec::new();
    for (number, CapturedPacket { bytes, meta }) in (1..).zip(kept) {
        let packet = world.origin().arrival(bytes, *meta);
        let explanation = explainer.explain(&packet, &mut host).map_err(SessionError::from);
        let fired = host.fire_timers().map_err(SessionError::Timer);
        let explanation = explanation.and_then(|explanation| fired.map(|_| explanation));
        let explanation = explanation.map_err(|source| RunError { packet: number, source })?;
        let verdict = explanation.outcome.verdict.name();
        let reason = reasons.entry((verdict, place(&explanation))).or_insert_with(|| Reason {
            count: 0,
            first: number,
            sentence: explanation.sentence(),
            listed: 0,
        });
        reason.count += 1;
        if reason.listed < OF_REASON && packets.len() < LISTED {
            reason.listed += 1;
            packets.push(row(number, bytes, meta, &explanation));
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.count));
    let reason = |((verdict, place), reason): ((&str, String), Reason)| {
        json!([verdict, place, reason.count, reason.first, reason.sentence])
    };
    Ok((packets, reasons.into_iter().map(reason).collect()))
}

/// Where the branch that decided is, in the program that ended the chain.
fn place(explanation: &ChainExplanation) -> String {
    let last = explanation.steps.last().map(|(_, last, _)| last);
    last.map_or_else(String::new, |last| last.place(last.decided_at()))
}

fn row(number: usize, bytes: &[u8], meta: &FrameMeta, explanation: &ChainExplanation) -> Json {
    let outcome = &explanation.outcome;
    let changes = differences(bytes, &outcome.bytes).into_iter();
    let changes: Vec<_> = changes.map(|c| json!([c.name, c.before, c.after])).collect();
    json!([
        number,
        meta.timestamp_ns,
        bytes.len(),
        outcome.verdict.name(),
        to_text(bytes),
        explanation.sentence(),
        changes,
    ])
}
