//! Measuring.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use paceline::capture::CaptureReader;
use paceline::measure::{Busy, Manner, MeasureError, Ratio, Room, Summary, Times, uneven};
use paceline::{ArrivalError, Burst, Outcome};
use paceline_kernel::ETHERNET_LEN;

use super::args::BenchArgs;
use super::output::{Measured, Report, Subject};
use crate::chain::SourceArgs;
use crate::common::capture::{Capture, CapturedPacket};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::report;
use crate::kernel_side::KernelSide;
use crate::measure::{Contender, hot_lines, timed};

/// Most packets that are measured: more would not fit into memory beside their copies.
const MOST: usize = 1 << 20;

/// Most packets whose instructions are counted.
const COUNTED: usize = 10_000;

/// The reason why nothing is measured.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("{0}: there are no packets")]
    Empty(String),
    #[error(transparent)]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Arrival(#[from] ArrivalError),
    #[error("the median in bursts is {found:.1} ns, more than --max-ns {most}")]
    TooSlow { found: f64, most: f64 },
    #[error("the ratio in bursts is {low:.2} or more, above --max-ratio {most}")]
    Ratio { low: f64, most: f64 },
}

impl CommandError for BenchError {}

/// Measures a program, perhaps against another one.
pub(crate) fn bench(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let load = |target: Option<&OsString>, engine| {
        let source = SourceArgs::of(target.cloned().into_iter().collect(), args.object.clone());
        Contender::load(&source, engine, args.unverified, &args.world)
    };
    let mut contenders = vec![load(args.target.as_ref(), args.engine)?];
    if let Some(against) = &args.against {
        contenders.push(load(Some(against), args.against_engine.or(args.engine))?);
    }
    let (capture, packets) = read(args)?;
    let mut busy = Busy::begin();
    let by_verdict = by_verdict(args, &mut contenders, &packets)?;
    let mut measured = measure(args, &mut contenders, &packets, &by_verdict).map_err(BenchError::from)?;
    if args.kernel {
        measured.extend(in_kernel(args, &mut contenders, &packets)?);
    }
    let mut busy = busy.signs();
    let firsts = measured.iter().filter_map(|measured| Some((&measured.what, measured.summaries.first()?)));
    busy.extend(firsts.filter_map(|(what, summary)| uneven(what, summary)));
    let counted = packets.get(..COUNTED).unwrap_or(&packets);
    let subject = |contender: &mut Contender| {
        let hot = args.by_line.then(|| hot_lines(contender, counted)).transpose()?;
        Ok(Subject { hot, ..subject(contender, counted)? })
    };
    let subjects = contenders.iter_mut().map(subject).collect::<Result<_, BenchError>>()?;
    let found = Report { subjects, capture, packets: packets.len(), rounds: args.rounds, measured, busy };
    report::print(|out| match args.json {
        true => writeln!(out, "{}", found.to_json()),
        false => found.write_text(out),
    })?;
    Ok(judge(args, &found).map(|()| ExitCode::SUCCESS)?)
}

fn read(args: &BenchArgs) -> Result<(String, Vec<CapturedPacket>), Failure> {
    let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
    let packets = capture.read_packets(MOST)?;
    if packets.len() == MOST {
        console::note(format_args!("only the first {MOST} packets are measured"));
    }
    match packets.is_empty() {
        true => Err(BenchError::Empty(capture.name).into()),
        false => Ok((capture.name, packets)),
    }
}

/// Packets by the verdict of the first program, if they are measured so.
type ByVerdict = BTreeMap<&'static str, Vec<CapturedPacket>>;

fn by_verdict(
    args: &BenchArgs,
    contenders: &mut [Contender],
    packets: &[CapturedPacket],
) -> Result<ByVerdict, BenchError> {
    let mut all = ByVerdict::new();
    let Some(contender) = contenders.first_mut().filter(|_| args.by_verdict) else { return Ok(all) };
    let mut burst = Burst::new(1);
    for packet in packets {
        contender.origin.arrival(&packet.bytes, packet.meta).enter(&mut burst, &mut contender.host)?;
        contender.run(&mut burst).map_err(MeasureError::from)?;
        let outcome = Outcome::of(burst.frame(0), &contender.host, contender.subject.ran_as(), None);
        all.entry(outcome.verdict.name()).or_default().push(packet.clone());
    }
    Ok(all)
}

fn measure(
    args: &BenchArgs,
    contenders: &mut [Contender],
    packets: &[CapturedPacket],
    by_verdict: &ByVerdict,
) -> Result<Vec<Measured>, MeasureError> {
    let mut room = Room::new(args.cold);
    let how = (args.rounds, Duration::from_millis(args.round_ms.into()));
    let mut one = |what: &str, packets: &[CapturedPacket], manner| -> Result<Measured, MeasureError> {
        let times = timed(&mut *contenders, packets, manner, how, &mut room)?;
        Ok(measured(what, packets.len(), &times))
    };
    let mut all = vec![one("in bursts", packets, Manner::Bursts)?, one("alone", packets, Manner::Alone)?];
    if args.cold {
        all.push(one("cold", packets, Manner::Cold)?);
    }
    for (verdict, packets) in by_verdict {
        all.push(one(verdict, packets, Manner::Bursts)?);
    }
    Ok(all)
}

fn measured(what: &str, packets: usize, times: &Times) -> Measured {
    let ratio = match times.as_slice() {
        [ours, theirs] => Some(Ratio::of(ours, theirs)),
        _ => None,
    };
    let summaries = times.iter().map(|times| Summary::of(times)).collect();
    Measured { what: what.to_owned(), packets, summaries, ratio }
}

/// Packets that the kernel runs, each many times over, in each round. Each of these waits for a grace period of RCU, some 20 ms, when
/// the dispatcher of XDP programs changes (`bpf_prog_change_xdp`).
const IN_KERNEL: usize = 16;

/// Runs of each packet, over which the kernel takes the mean.
const REPEATED: u32 = 1_000;

/// The first program's test runs in the kernel, and its runs here over the same packets: each packet alone, hot, less what an empty
/// program of its type takes on that side. In the kernel what the program changed stays from run to run.
fn in_kernel(
    args: &BenchArgs,
    contenders: &mut [Contender],
    packets: &[CapturedPacket],
) -> Result<Vec<Measured>, Failure> {
    let Some(contender) = contenders.first_mut() else { return Ok(Vec::new()) };
    let kernel = KernelSide::new(&contender.subject)?;
    let Some(mut empty) = contender.empty()? else { return Ok(Vec::new()) };
    let empty_kernel = KernelSide::new(&empty.subject)?;
    // The kernel refuses what is shorter than an Ethernet header.
    let long: Vec<_> = packets.iter().filter(|packet| packet.bytes.len() >= ETHERNET_LEN).collect();
    let every = long.len().div_ceil(IN_KERNEL).max(1);
    let chosen: Vec<CapturedPacket> = long.into_iter().step_by(every).cloned().collect();
    let once = |side: &KernelSide| -> Result<f64, Failure> {
        let mut sum = 0.0;
        for packet in &chosen {
            sum += f64::from(side.time(&packet.bytes, REPEATED)?);
        }
        Ok(sum / chosen.len().max(1) as f64)
    };
    let mut times = vec![Vec::new(); 2];
    for _ in 0..args.rounds {
        for (times, side) in times.iter_mut().zip([&kernel, &empty_kernel]) {
            times.push(once(side)?);
        }
    }
    let how = (args.rounds, Duration::from_millis(args.round_ms.into()));
    let ours = timed([contender, &mut empty], &chosen, Manner::Alone, how, &mut Room::new(false))
        .map_err(BenchError::from)?;
    let less_empty = |what: &str, times: &Times| {
        let empty = times.last().map_or(0.0, |empty| Summary::of(empty).median);
        let less: Vec<f64> = times.iter().take(1).flatten().map(|time| (time - empty).max(0.0)).collect();
        Measured {
            what: what.to_owned(),
            packets: chosen.len(),
            summaries: vec![Summary::of(&less)],
            ratio: None,
        }
    };
    Ok(vec![less_empty("kernel", &times), less_empty("beside the kernel", &ours)])
}

/// Counts instructions on the plain interpreter.
fn subject(contender: &mut Contender, counted: &[CapturedPacket]) -> Result<Subject, BenchError> {
    let mut explainer = contender.subject.explainer();
    let mut instructions = 0;
    for packet in counted {
        let CapturedPacket { bytes, meta } = packet;
        let packet = contender.origin.arrival(bytes, *meta);
        instructions += explainer.count(&packet, &mut contender.host)?;
    }
    let programs = contender.subject.programs.iter();
    let native = programs.map(|program| program.program.native_code().map(|code| code.bytes().len())).sum();
    Ok(Subject {
        native,
        hot: None,
        name: contender.subject.name.clone(),
        engine: contender.engine.name(),
        instructions: instructions as f64 / counted.len().max(1) as f64,
    })
}

/// Compares with what the command line allows.
fn judge(args: &BenchArgs, found: &Report) -> Result<(), BenchError> {
    let Some(bursts) = found.measured.first() else { return Ok(()) };
    let median = bursts.summaries.first().map_or(0.0, |summary| summary.median);
    if let Some(most) = args.max_ns.filter(|most| median > *most) {
        return Err(BenchError::TooSlow { found: median, most });
    }
    match (args.max_ratio, bursts.ratio) {
        (Some(most), Some(ratio)) if ratio.low > most => Err(BenchError::Ratio { low: ratio.low, most }),
        _ => Ok(()),
    }
}
