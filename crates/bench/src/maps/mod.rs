//! Maps: cost of look-ups and updates in native code, against the kernel's maps by test-run, Rust tables, and plain arrays;
//! and memory per entry.
//!
//! Costs are differences: one program generates unpredictable keys and looks them up, another one only generates the same
//! keys.

mod lru;
mod memory;
mod native;
mod program;
pub(crate) mod routes;

use std::error::Error;

use paceline::{MapFlags, MapKind};

use crate::measure::{Timing, Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::{Settings, Table};
pub(crate) use memory::child;
use program::{Keys, Ours, Subject, Task};

/// A measured map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Like {
    pub(crate) kind: MapKind,
    pub(crate) key_size: u32,
    pub(crate) entries: u32,
    pub(crate) flags: MapFlags,
}

impl Like {
    pub(crate) const fn new(kind: MapKind, key_size: u32, entries: u32) -> Self {
        Self { kind, key_size, entries, flags: MapFlags(0) }
    }
}

/// Program runs per round.
const RUNS: usize = 20_000;

/// Entries of the small and the large map.
fn sizes(settings: Settings) -> [u32; 2] {
    if settings.smoke { [1000, 4000] } else { [1000, 4_000_000] }
}

fn runs(settings: Settings) -> usize {
    if settings.smoke { 10 } else { RUNS }
}

pub(crate) fn table(settings: Settings) -> Table {
    let mut rows = Vec::new();
    for kind in [MapKind::Array, MapKind::PerCpuArray] {
        rows.push(array(settings, Like::new(kind, 4, 1000))?);
    }
    for entries in sizes(settings) {
        for key_size in [4, 16, 40] {
            rows.extend(hash(settings, Like::new(MapKind::Hash, key_size, entries))?);
        }
    }
    for kind in [MapKind::PerCpuHash, MapKind::LruHash] {
        rows.extend(hash(settings, Like::new(kind, 16, 1000))?);
    }
    rows.extend(routes::rows(settings)?);
    rows.extend(lru::rows(settings)?);
    rows.extend(memory::rows(settings)?);
    Ok(rows.into())
}

/// A subject with look-ups and one without.
pub(crate) type Pair<'a> = (Box<dyn Subject + 'a>, Box<dyn Subject + 'a>);

/// Cost of each subject's look-ups; subjects come as pairs, with look-ups and without.
pub(crate) fn differences(
    settings: Settings,
    subjects: &mut [Pair<'_>],
) -> Result<Vec<Timing>, Box<dyn Error>> {
    let runs = runs(settings);
    let mut works: Vec<Work<'_>> = Vec::new();
    for (with, without) in subjects {
        works.push(Box::new(move || with.run(runs)));
        works.push(Box::new(move || without.run(runs)));
    }
    let times = interleaved(settings.smoke, &mut works)?;
    Ok(times.chunks_exact(2).map(|pair| positive(pair[0].minus(pair[1]))).collect())
}

/// A difference within the noise counts as a tenth of a nanosecond.
fn positive(timing: Timing) -> Timing {
    Timing { min: timing.min.max(0.1), median: timing.median.max(0.1), ..timing }
}

fn describe(like: Like) -> String {
    format!("{} of {}, keys of {}", like.kind, like.entries, like.key_size)
}

fn array(settings: Settings, like: Like) -> Result<Row, Box<dyn Error>> {
    let keys = Keys { count: like.entries, start: 0 };
    let ours = Ours::filled(like)?;
    let mut subjects: Vec<Pair<'_>> = vec![
        (Box::new(ours.with(Task::LookUp, keys)?), Box::new(ours.with(Task::Nothing, keys)?)),
        (native::array(keys, true), native::array(keys, false)),
    ];
    let times = differences(settings, &mut subjects)?;
    let over = positive(times[0].minus(times[1]));
    let name = format!("{}: look-up in native code, over a plain array", describe(like));
    Ok(Row::new(name, "", Figure::Time { ours: over, against: None }).with_bar(Some(Bar::Most(1.0))))
}

fn hash(settings: Settings, like: Like) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let ours = Ours::filled(like)?;
    let kernels = program::Kernels::filled(like);
    for (what, start) in [("hit", 0), ("miss", like.entries)] {
        let keys = Keys { count: like.entries, start };
        let mut subjects: Vec<Pair<'_>> =
            vec![(Box::new(ours.with(Task::LookUp, keys)?), Box::new(ours.with(Task::Nothing, keys)?))];
        let (rust, bare) = native::hash(like, keys);
        subjects.push((rust, bare));
        if let Some(kernels) = &kernels {
            let pair = (kernels.with(Task::LookUp, keys)?, kernels.with(Task::Nothing, keys)?);
            subjects.push((Box::new(pair.0), Box::new(pair.1)));
        }
        let times = differences(settings, &mut subjects)?;
        let name = format!("{}: {what}", describe(like));
        if let Some(&kernel) = times.get(2) {
            let figure = Figure::Time { ours: times[0], against: Some(kernel) };
            let row = Row::new(&name, program::kernel_name(), figure).with_bar(Some(Bar::Ratio(1.0)));
            rows.push(Row { reach: Some(Bar::Ratio(2.0)), ..row });
        }
        let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
        let in_cache = like.entries <= 1000 && like.kind == MapKind::Hash;
        let row = Row::new(name, "std HashMap (hashbrown), foldhash", figure);
        rows.push(Row { reach: in_cache.then_some(Bar::Ratio(1.0 / 1.3)), ..row });
    }
    Ok(rows)
}
