//! What a packet costs on each engine, and on others' (`engines`).
//!
//! Every contender runs the same packets in the same loop: again and again the one that the filters let through
//! (`hit`), or 10,000 mixed ones in random order, which do not fit the caches (`miss`). That all come to the same
//! results is seen before anything is timed.

#[cfg(feature = "native")]
mod native;
mod packets;

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;

use paceline::{Collection, Engine, FrameMut, Host, LoadOptions, Object};

use crate::measure::{Work, interleaved};
use crate::report::{Figure, Row};
use crate::{Rows, Settings};
use packets::Packets;

/// The workloads as XDP programs (`workloads/workloads.bpf.c`).
const OBJECT: &[u8] = include_bytes!("../../workloads/workloads.o");

/// Packets a contender runs in a round.
const ROUND: usize = 200_000;

/// A workload of shared/DESIGN.md.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "W1 drop", program: "drop_program" },
    Workload { name: "W2 port 22", program: "port22_program" },
    Workload { name: "W3 port 22 with payload", program: "port22_payload_program" },
    Workload { name: "W4 count protocols", program: "count_program" },
];

/// Runs one packet and gives the verdict.
type Run<'a> = Box<dyn FnMut(&mut [FrameMut<'_>], usize) -> u64 + 'a>;

/// Who runs a workload.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    run: Run<'a>,
}

impl<'a> Contender<'a> {
    /// One that runs a packet by a call of `run`.
    pub(crate) fn new(name: impl Into<String>, mut run: impl FnMut(&mut FrameMut<'_>) -> u64 + 'a) -> Self {
        let all = move |frames: &mut [FrameMut<'_>], count: usize| {
            let (mut sum, mut left) = (0_u64, count);
            while left > 0 {
                for frame in frames.iter_mut().take(left) {
                    sum = sum.wrapping_add(run(frame));
                }
                left = left.saturating_sub(frames.len());
            }
            sum
        };
        Self { name: name.into(), run: Box::new(all) }
    }
}

pub(crate) fn table(settings: Settings) -> Rows {
    let collections = Engine::ALL.map(|engine| (engine, load(engine)));
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        for mut packets in [Packets::hit()?, Packets::miss()?] {
            let name = format!("{}, {}", workload.name, packets.name);
            let frames = RefCell::new(packets.frames());
            let mut ours = Vec::new();
            for (engine, collection) in &collections {
                // An engine that this machine does not have is no contender.
                if let Ok(program) = collection
                    .as_ref()
                    .map_err(|e| e.to_string())
                    .and_then(|c| c.program(Some(workload.program)).map_err(|error| error.to_string()))
                {
                    let mut host = Host::default();
                    let run =
                        move |frame: &mut FrameMut<'_>| program.run(frame, &mut host).unwrap_or(u64::MAX);
                    ours.push((*engine, Contender::new(engine.name(), run)));
                }
            }
            let others = rivals(*workload);
            rows.extend(measure(settings, &name, &frames, ours, others)?);
        }
    }
    Ok(rows)
}

fn load(engine: Engine) -> Result<Collection, Box<dyn Error>> {
    Ok(Object::parse(OBJECT)?.load(&LoadOptions { engine, ..LoadOptions::default() })?)
}

/// Those that Paceline is compared with; the first, if it is native code, sets the bar.
fn rivals<'a>(workload: Workload) -> Vec<Contender<'a>> {
    let rivals: Vec<Contender<'a>> = Vec::new();
    #[cfg(feature = "native")]
    let rivals = {
        let mut rivals = rivals;
        rivals.extend(native::contender(workload));
        rivals
    };
    let _ = workload;
    rivals
}

fn measure<'a>(
    settings: Settings,
    name: &str,
    frames: &'a RefCell<Vec<FrameMut<'_>>>,
    ours: Vec<(Engine, Contender<'a>)>,
    others: Vec<Contender<'a>>,
) -> Rows {
    let count = if settings.smoke { 100 } else { ROUND };
    let engines: Vec<Engine> = ours.iter().map(|(engine, _)| *engine).collect();
    let mut contenders: Vec<Contender<'a>> =
        ours.into_iter().map(|(_, contender)| contender).chain(others).collect();
    agree(name, &mut contenders, &mut frames.borrow_mut())?;
    let names: Vec<String> = contenders.iter().map(|contender| contender.name.clone()).collect();
    let mut works: Vec<Work<'_>> = contenders
        .into_iter()
        .map(|mut contender| -> Work<'_> {
            Box::new(move || {
                black_box((contender.run)(&mut frames.borrow_mut(), count));
                Ok(count as u64)
            })
        })
        .collect();
    let times = interleaved(settings.smoke, &mut works)?;
    let row = |index: usize, against: Option<usize>| Row {
        name: format!("{name}, {}", names[index]),
        against: against.map(|other| names[other].clone()).unwrap_or_default(),
        figure: Figure::Time { ours: times[index], against: against.map(|other| times[other]), bar: None },
    };
    let mut rows = Vec::new();
    for index in 0..engines.len() {
        let rivals = engines.len()..names.len();
        if rivals.is_empty() {
            rows.push(row(index, None));
        }
        rows.extend(rivals.map(|rival| row(index, Some(rival))));
    }
    Ok(rows)
}

/// Sees that all come to the same verdict of each packet.
fn agree(
    name: &str,
    contenders: &mut [Contender<'_>],
    frames: &mut [FrameMut<'_>],
) -> Result<(), Box<dyn Error>> {
    let Some((first, rest)) = contenders.split_first_mut() else { return Ok(()) };
    for (index, frame) in frames.chunks_mut(1).enumerate() {
        let expected = (first.run)(frame, 1) as u32;
        for other in rest.iter_mut() {
            let found = (other.run)(frame, 1) as u32;
            if found != expected {
                let text = format!(
                    "{name}, packet {index}: {} says {expected}, {} says {found}",
                    first.name, other.name
                );
                return Err(text.into());
            }
        }
    }
    Ok(())
}
