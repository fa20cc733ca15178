//! Cost of a packet on each engine, and on other implementations (`engines`).
//!
//! All contenders run the same packets in the same loop: one packet that passes the filters, again and again (`hit`), or
//! 10,000 mixed ones in random order, which exceed the caches (`miss`). Before measuring, all must have the same results.

mod chains;
pub(crate) mod classic;
mod column;
mod contender;
#[cfg(feature = "dpdk")]
mod dpdk;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "libpcap")]
mod libpcap;
mod measure;
#[cfg(feature = "native")]
mod native;
mod packets;
#[cfg(any(feature = "rivals", feature = "dpdk"))]
mod raw;
#[cfg(feature = "rivals")]
mod rbpf;
#[cfg(feature = "rivals")]
mod sbpf;
mod variants;
mod workload;

use std::error::Error;
use std::hint::black_box;

use column::Column;
use contender::{Contender, Role};
use measure::measure;
use paceline::{Collection, Engine, FrameMut, Host, LoadOptions, Object, Program};
use paceline_engine::by_match;
use workload::WORKLOADS;

use crate::code;
use crate::measure::Timing;
use crate::report::{Bar, Figure, Matrix, Report, Row};
use crate::settings::{CONTENDERS, Rows, Settings, Table};

pub(crate) use packets::Packets;
pub(crate) use workload::{OBJECT, Workload};

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report { matrix: Some(Matrix::default()), ..Report::default() };
    for workload in WORKLOADS {
        let texts = texts(*workload)?;
        for mut packets in [Packets::hit()?, Packets::miss()?] {
            let mut contenders = ours(*workload)?;
            contenders.extend(others(*workload, &texts)?);
            let hit = packets.name == "hit";
            #[cfg(feature = "kernel")]
            contenders.extend(hit.then(|| kernel::contender(*workload)).transpose()?);
            let column = Column { title: format!("{}, {}", workload.title, packets.name), hit, bars };
            let times = measure(settings, &column.title, &mut packets.frames(), &mut contenders)?;
            let results: Vec<(&Contender<'_>, Timing)> = contenders.iter().zip(times).collect();
            column.report(&results, &mut report);
        }
    }
    report.rows.extend(chains::rows(settings)?);
    report.rows.extend(variants::prologue(settings)?);
    report.rows.extend(loading(settings)?);
    Ok(report)
}

/// Our engines for the workload on this machine. The first one always exists, and is the reference of all others.
fn ours<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let mut contenders = Vec::new();
    for engine in Engine::ALL.into_iter().rev() {
        let collection = load(engine)?;
        let program = match collection.program(Some(&workload.program())) {
            Ok(program) => program,
            // Engines that this machine does not have are skipped.
            Err(paceline::ProgramError::Engine { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(program) = (engine == Engine::Threaded).then(|| by_match(program.program())).flatten() {
            contenders.push(contender("threaded by match", Role::Match, program, &collection));
        }
        contenders.push(contender(
            engine.name(),
            Role::Ours(engine),
            Program::clone(program.program()),
            &collection,
        ));
    }
    Ok(contenders)
}

fn contender<'a>(name: &str, role: Role, program: Program, collection: &Collection) -> Contender<'a> {
    let (mut host, collection) = (Host::default(), collection.clone());
    let run = move |frame: &mut FrameMut<'_>| program.run_raw(frame, &mut host).unwrap_or(u64::MAX);
    Contender::new(name, role, run).with_counts(move || counts(&collection))
}

fn load(engine: Engine) -> Result<Collection, Box<dyn Error>> {
    Ok(Object::parse(OBJECT)?.load(&LoadOptions::default().engine(engine).cpus(CONTENDERS))?)
}

/// Counters of W4.
fn counts(collection: &Collection) -> Vec<u64> {
    let value = |key: u32| -> Option<u64> {
        let value = collection.map("counts")?.lookup(&key.to_ne_bytes()).ok()?;
        let of_cpus = value.chunks(8).map(|value| Some(u64::from_ne_bytes(value.try_into().ok()?)));
        of_cpus.sum()
    };
    (0..256).map_while(value).collect()
}

/// The workload's instructions for engines without XDP.
#[cfg(feature = "rivals")]
fn texts(workload: Workload) -> Result<Vec<u8>, Box<dyn Error>> {
    raw::program(&format!("framed/{}", workload.name))
}

#[cfg(not(feature = "rivals"))]
fn texts(_: Workload) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(Vec::new())
}

/// The rivals.
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

/// Time to verify and compile W3, against compilation alone in others and loading in the kernel.
fn loading(settings: Settings) -> Rows {
    const W3: Workload = WORKLOADS[2];
    if !Engine::Jit.is_available() {
        return Ok(Vec::new());
    }
    let object = Object::parse(OBJECT)?;
    let spec = object.programs().iter().find(|spec| spec.name == W3.program()).ok_or("no such program")?;
    #[cfg(feature = "rivals")]
    let text = texts(W3)?;
    #[cfg(feature = "rivals")]
    let (rival, work): (_, Option<crate::measure::Work<'_>>) =
        (rbpf::compiler(), Some(Box::new(|| rbpf::compile(&text).map(|_| 1))));
    #[cfg(not(feature = "rivals"))]
    let (rival, work) = (String::new(), None);
    let measured = code::measure(settings, &object, spec, work)?;
    let figure = |against| Figure::Time { ours: measured.load, against };
    let name = format!("{}: verify and compile, jit", W3.title);
    let reach = measured.other.map(|_| Bar::Ratio(1.0));
    let bar = Some(Bar::Most(200e3));
    let mut rows = vec![Row { bar, reach, ..Row::new(&name, rival, figure(measured.other)) }];
    if let Some((kernel, _)) = measured.kernel {
        rows.push(Row::new(name, code::kernel_name(), figure(Some(kernel))));
    }
    Ok(rows)
}

fn bars(engine: Engine, other: Role, is_hit: bool) -> (Option<Bar>, Option<Bar>) {
    match (engine, other) {
        _ if !is_hit => (None, None),
        (Engine::Jit, Role::Native) => (Some(Bar::Ratio(1.0 / 1.3)), Some(Bar::Ratio(1.0 / 1.1))),
        (Engine::Jit, Role::Jit) => (Some(Bar::Ratio(1.0)), None),
        (Engine::Threaded, Role::Match) => (Some(Bar::Ratio(1.5)), Some(Bar::Ratio(1.8))),
        (Engine::Threaded, Role::Libpcap) => (Some(Bar::Ratio(2.0)), Some(Bar::Ratio(3.0))),
        _ => (None, None),
    }
}
