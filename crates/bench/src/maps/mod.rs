//! Maps: cost of look-ups and updates in native code, against the kernel's maps by test-run, Rust tables, and plain arrays;
//! and memory per entry.
//!
//! Costs are differences: one program generates unpredictable keys and looks them up, another one only generates the same
//! keys.

mod differences;
mod like;
mod lru;
mod memory;
mod native;
mod program;
pub(crate) mod routes;

use std::error::Error;

use differences::positive;
use like::describe;
use paceline::MapKind;
use program::{Keys, Ours, Task};

use crate::report::{Bar, Figure, Row};
use crate::settings::{Settings, Table};

pub(crate) use differences::{Pair, differences};
pub(crate) use like::Like;
pub(crate) use memory::child;

/// Entries of the small and the large map.
fn sizes(settings: Settings) -> [u32; 2] {
    if settings.smoke { [1000, 4000] } else { [1000, 4_000_000] }
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
