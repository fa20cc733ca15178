//! What a packet costs on each engine, and on others' (`engines`).
//!
//! Every contender runs the same packets in the same loop: again and again the one that the filters let through
//! (`hit`), or 10,000 mixed ones in random order, which do not fit the caches (`miss`). That all come to the same
//! results is seen before anything is timed.

mod contender;
#[cfg(feature = "dpdk")]
mod dpdk;
#[cfg(feature = "libpcap")]
mod libpcap;
#[cfg(feature = "native")]
mod native;
mod packets;
#[cfg(any(feature = "rivals", feature = "dpdk"))]
mod raw;
#[cfg(feature = "rivals")]
mod rbpf;
#[cfg(feature = "rivals")]
mod sbpf;

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;

use paceline::{Collection, Engine, FrameMut, Host, LoadOptions, Object};

use crate::measure::{Timing, Work, rounds, thread_time};
use crate::report::{Bar, Figure, Matrix, Report, Row};
use crate::{Settings, Table};
use contender::{Contender, Role, agree};
use packets::Packets;

/// The workloads as XDP programs (`workloads/workloads.bpf.c`).
const OBJECT: &[u8] = include_bytes!("../../workloads/workloads.o");

/// Rounds of a measurement that counts.
const ROUNDS: usize = 41;

/// Nanoseconds that a contender's round takes about, so that the fast and the slow ones take the same part of the machine's time.
const ROUND: f64 = 1e6;

/// A workload of the benchmarks (`workloads/workloads.h`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// As it is called in C; the XDP program is `NAME_program`.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The same for tcpdump.
    #[cfg_attr(not(feature = "libpcap"), allow(dead_code, reason = "libpcap compiles it"))]
    pub(crate) expression: Option<&'static str>,
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "drop", title: "W1 drop", expression: None },
    Workload { name: "port22", title: "W2 port 22", expression: Some("port 22") },
    Workload {
        name: "port22_payload",
        title: "W3 port 22 with payload",
        expression: Some("tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)"),
    },
    Workload { name: "count", title: "W4 count protocols", expression: None },
];

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report { matrix: Some(Matrix::default()), ..Report::default() };
    for workload in WORKLOADS {
        let texts = texts(*workload)?;
        for mut packets in [Packets::hit()?, Packets::miss()?] {
            let mut contenders = ours(*workload)?;
            contenders.extend(others(*workload, &texts)?);
            let column =
                Column { title: format!("{}, {}", workload.title, packets.name), hit: packets.name == "hit" };
            let times = measure(settings, &column.title, &mut packets.frames(), &mut contenders)?;
            let results: Vec<(&Contender<'_>, Timing)> = contenders.iter().zip(times).collect();
            column.report(&results, &mut report);
        }
    }
    Ok(report)
}

/// Our engines that can run the workload on this machine; the first, which always can, is what all are held against.
fn ours<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let mut contenders = Vec::new();
    for engine in Engine::ALL.into_iter().rev() {
        let collection = load(engine)?;
        let program = match collection.program(Some(&format!("{}_program", workload.name))) {
            Ok(program) => program,
            // An engine that is not there is no contender.
            Err(paceline::NoProgram::Engine { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut host = Host::default();
        let run = move |frame: &mut FrameMut<'_>| program.run(frame, &mut host).unwrap_or(u64::MAX);
        contenders.push(
            Contender::new(engine.name(), Role::Ours(engine), run).with_counts(move || counts(&collection)),
        );
    }
    Ok(contenders)
}

fn load(engine: Engine) -> Result<Collection, Box<dyn Error>> {
    Ok(Object::parse(OBJECT)?.load(&LoadOptions { engine, ..LoadOptions::default() })?)
}

/// What W4 counted.
fn counts(collection: &Collection) -> Vec<u64> {
    let value = |key: u32| -> Option<u64> {
        let value = collection.map("counts")?.get(&key.to_ne_bytes()).ok()?;
        Some(u64::from_ne_bytes(value.try_into().ok()?))
    };
    (0..256).map_while(value).collect()
}

/// The workload's instructions for engines that know no XDP.
#[cfg(feature = "rivals")]
fn texts(workload: Workload) -> Result<Vec<u8>, Box<dyn Error>> {
    raw::program(&format!("framed/{}", workload.name))
}

#[cfg(not(feature = "rivals"))]
fn texts(_: Workload) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(Vec::new())
}

/// Those that Paceline is compared with.
fn others<'a>(workload: Workload, text: &'a [u8]) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    #[allow(unused_mut, reason = "features add more")]
    let mut others = vec![Contender::new("the loop alone", Role::Loop, |frame| {
        black_box(frame);
        0
    })];
    #[cfg(feature = "native")]
    others.extend(native::contenders(workload));
    #[cfg(feature = "rivals")]
    {
        others.extend(rbpf::contenders(text)?);
        others.extend(sbpf::contenders(text)?);
    }
    #[cfg(feature = "dpdk")]
    others.extend(dpdk::contenders(workload)?);
    #[cfg(feature = "libpcap")]
    others.extend(libpcap::contenders(workload)?);
    let _ = (workload, text);
    Ok(others)
}

/// What a packet costs each contender.
fn measure(
    settings: Settings,
    title: &str,
    frames: &mut [FrameMut<'_>],
    contenders: &mut [Contender<'_>],
) -> Result<Vec<Timing>, Box<dyn Error>> {
    agree(title, contenders, frames)?;
    let passes: Vec<usize> = contenders.iter_mut().map(|contender| passes(contender, frames)).collect();
    let frames = RefCell::new(frames);
    let mut works: Vec<Work<'_>> = contenders
        .iter_mut()
        .zip(passes)
        .map(|(contender, passes)| -> Work<'_> {
            let frames = &frames;
            Box::new(move || {
                let frames = &mut **frames.borrow_mut();
                let count = if settings.smoke { frames.len() } else { frames.len() * passes };
                black_box((contender.run)(frames, count));
                Ok(count as u64)
            })
        })
        .collect();
    rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)
}

/// How often all frames are run in a round.
fn passes(contender: &mut Contender<'_>, frames: &mut [FrameMut<'_>]) -> usize {
    let mut passes = 1;
    loop {
        let start = thread_time();
        black_box((contender.run)(frames, frames.len() * passes));
        let taken = thread_time() - start;
        // Short times are not told well.
        if taken > ROUND / 10.0 {
            return ((passes as f64 * ROUND / taken) as usize).max(1);
        }
        passes *= 8;
    }
}

/// One workload with one set of packets.
struct Column {
    title: String,
    hit: bool,
}

impl Column {
    /// Adds the figures of this column, and each of our engines against each of the others.
    fn report(&self, results: &[(&Contender<'_>, Timing)], report: &mut Report) {
        let matrix = report.matrix.get_or_insert_default();
        matrix.column(&self.title);
        for (contender, timing) in results {
            matrix.set(&contender.name, *timing);
        }
        for (contender, ours) in results {
            let Role::Ours(engine) = contender.role else { continue };
            for (other, against) in results.iter().filter(|(other, _)| !matches!(other.role, Role::Ours(_))) {
                let figure = Figure::Time { ours: *ours, against: Some(*against) };
                let (bar, reach) = self.bars(engine, other.role);
                let name = format!("{}, {}", self.title, contender.name);
                report.rows.push(Row { bar, reach, ..Row::new(name, &other.name, figure) });
            }
        }
    }

    /// What is asked of an engine against another, and what would be better.
    fn bars(&self, engine: Engine, other: Role) -> (Option<Bar>, Option<Bar>) {
        match (engine, other) {
            _ if !self.hit => (None, None),
            (Engine::Jit, Role::Native) => (Some(Bar::Ratio(1.0 / 1.3)), Some(Bar::Ratio(1.0 / 1.1))),
            (Engine::Jit, Role::Jit) => (Some(Bar::Ratio(1.0)), None),
            (Engine::Threaded, Role::Libpcap) => (Some(Bar::Ratio(2.0)), Some(Bar::Ratio(3.0))),
            _ => (None, None),
        }
    }
}
