//! Updates of an LRU map by two workers, with three times as many keys as entries, so that most updates evict an element.
//! The clock is that of each worker's thread.

use std::error::Error;
use std::sync::Barrier;
use std::thread;

use paceline::{Host, MapFlags, MapKind};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::differences::{positive, runs};
use super::like::Like;
use super::program::{Kernels, Keys, Ours, Subject, Task, kernel_name};
use crate::measure::{Timing, thread_time};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

const WORKERS: usize = 2;
const ROUNDS: usize = 9;

pub(super) fn rows(settings: Settings) -> Rows {
    let entries = if settings.smoke { 2000 } else { 100_000 };
    let ours_like = Like::new(MapKind::LruHash, 16, entries);
    let kernels_like = Like { flags: MapFlags::NO_COMMON_LRU, ..ours_like };
    let keys = Keys { count: 3 * entries, start: 0 };
    let (ours, kernels) = (Ours::empty(ours_like)?, Kernels::empty(kernels_like));
    let mut mine = Vec::new();
    for task in [Task::Update, Task::Nothing] {
        let mut workers = Vec::new();
        for cpu in 0..WORKERS {
            let mut worker = ours.with(task, keys)?;
            worker.host = Host::new(cpu);
            workers.push(worker);
        }
        mine.push(workers);
    }
    let mut theirs = Vec::new();
    if let Some(kernels) = &kernels {
        for task in [Task::Update, Task::Nothing] {
            theirs.push((0..WORKERS).map(|_| kernels.with(task, keys)).collect::<Result<Vec<_>, _>>()?);
        }
    }
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for _ in 0..if settings.smoke { 1 } else { ROUNDS } {
        our_times.push(difference(&mut mine, runs(settings))?);
        if !theirs.is_empty() {
            their_times.push(difference(&mut theirs, runs(settings))?);
        }
    }
    let against = (!their_times.is_empty()).then(|| timing(their_times));
    let figure = Figure::Time { ours: timing(our_times), against };
    let name = format!("lru_hash of {entries}, keys of 16: update by two workers at once");
    let row = Row::new(name, format!("{}, per-CPU lists", kernel_name()), figure);
    Ok(vec![row.with_bar(against.map(|_| Bar::Ratio(1.0)))])
}

fn timing(times: Vec<f64>) -> Timing {
    positive(Timing::of(times))
}

/// Cost of an update on the slower worker, without the generation of keys.
fn difference<S: Subject + Send>(tasks: &mut [Vec<S>], runs: usize) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for workers in tasks {
        times.push(together(workers, runs)?);
    }
    Ok(times[0] - times[1])
}

/// Nanoseconds per key of the slower worker, each on its own core if there are enough.
fn together<S: Subject + Send>(workers: &mut [S], runs: usize) -> Result<f64, Box<dyn Error>> {
    let start = Barrier::new(workers.len());
    let measure = |(core, worker): (usize, &mut S)| -> Result<f64, String> {
        let mut only = CpuSet::new();
        only.set(core);
        // Otherwise they share a core.
        let _ = sched_setaffinity(None, &only);
        start.wait();
        let begin = thread_time();
        let units = worker.run(runs).map_err(|error| error.to_string())?;
        Ok((thread_time() - begin) / units as f64)
    };
    let times: Vec<Result<f64, String>> = thread::scope(|scope| {
        let measure = &measure;
        let handles: Vec<_> =
            workers.iter_mut().enumerate().map(|worker| scope.spawn(move || measure(worker))).collect();
        handles.into_iter().map(|handle| handle.join().map_err(|_| "a worker died".to_owned())?).collect()
    });
    let mut slowest: f64 = 0.0;
    for time in times {
        slowest = slowest.max(time?);
    }
    Ok(slowest)
}
