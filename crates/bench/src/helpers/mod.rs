//! Helpers, operations on maps and fields of contexts (`helpers`): a program for each, over one packet again and again.
//!
//! The figure of a helper is what its program takes more than the empty one of its type. That of a context is the whole run: what a
//! context costs is paid before the program begins.

mod inputs;
#[cfg(feature = "kernel")]
mod kernel;

use std::error::Error;

use paceline::{Burst, Collection, FrameMeta, Host, LoadOptions, Object, VerifiedProgram};

use inputs::{FILLED, packet, value};
#[cfg(feature = "kernel")]
use kernel::{in_kernel, kernel_name};

use crate::measure::{Timing, Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Settings, Table};

/// `workloads/helpers.bpf.c`
const OBJECT: &[u8] = include_bytes!("../../workloads/helpers.o");
/// Programs that only use the context: their whole runs are compared.
const CONTEXTS: [&str; 5] = ["empty_xdp", "empty_tc", "tc_mark_cb", "tc_protocol", "tc_parse"];
/// Packets in a round.
const PACKETS: usize = 25_600;

/// A program with the packets that it runs over.
struct Subject {
    program: VerifiedProgram,
    burst: Burst,
    host: Host,
}

impl Subject {
    fn new(collection: &Collection, name: &str, frames: usize) -> Result<Self, Box<dyn Error>> {
        let mut burst = Burst::new(frames);
        (0..frames).try_for_each(|_| burst.push(&packet(), FrameMeta::default()))?;
        Ok(Self { program: collection.program(Some(name))?, burst, host: Host::new(0) })
    }

    fn run(&mut self, packets: usize) -> Result<u64, Box<dyn Error>> {
        let bursts = packets.div_ceil(self.burst.len());
        for _ in 0..bursts {
            self.program.run_burst(&mut self.burst, &mut self.host)?;
        }
        self.host.give_back_cpu();
        Ok((bursts * self.burst.len()) as u64)
    }
}

/// The programs of the object with the times of each: in bursts, alone, and in the kernel.
struct Times {
    names: Vec<String>,
    times: Vec<Timing>,
    /// Contenders of each program.
    each: usize,
}

impl Times {
    fn of(&self, name: &str, contender: usize) -> Result<Timing, Box<dyn Error>> {
        let index = self.names.iter().position(|known| known == name).ok_or("no such program")?;
        self.times.get(index * self.each + contender).copied().ok_or_else(|| "a time is missing".into())
    }

    /// What a program's row compares: a whole run, or what it takes more than the empty program of its type.
    fn figure(&self, name: &str, contender: usize) -> Result<Timing, Box<dyn Error>> {
        let whole = self.of(name, contender)?;
        if CONTEXTS.contains(&name) {
            return Ok(whole);
        }
        let empty = if name.starts_with("tc_") { "empty_tc" } else { "empty_xdp" };
        let more = whole.minus(self.of(empty, contender)?);
        // A difference within the noise counts as a tenth of a nanosecond.
        Ok(Timing { min: more.min.max(0.1), median: more.median.max(0.1), ..more })
    }
}

pub(crate) fn table(settings: Settings) -> Table {
    let object = Object::parse(OBJECT)?;
    let collection = object.load(&LoadOptions::default())?;
    for (map, key, len) in FILLED {
        collection.map(map).ok_or("no such map")?.insert(&key, &value(len))?;
    }
    let names: Vec<String> = object.programs().iter().map(|program| program.name.clone()).collect();
    let count = if settings.smoke { 64 } else { PACKETS };
    let mut subjects = Vec::new();
    for name in &names {
        subjects.push(Subject::new(&collection, name, 64)?);
        subjects.push(Subject::new(&collection, name, 1)?);
    }
    let kernel = in_kernel(&object)?;
    let mut works: Vec<Work<'_>> = Vec::new();
    for (index, pair) in subjects.chunks_exact_mut(2).enumerate() {
        works.extend(pair.iter_mut().map(|subject| Box::new(move || subject.run(count)) as Work<'_>));
        works.extend(kernel.as_ref().map(|kernel| kernel.work(index, count)));
    }
    let times = interleaved(settings.smoke, &mut works)?;
    drop(works);
    let times = Times { each: times.len() / names.len(), names, times };
    let mut rows = Vec::new();
    for name in &times.names {
        for (how, contender) in [("in bursts", 0), ("alone", 1)] {
            let against = (times.each > 2).then(|| times.figure(name, 2)).transpose()?;
            let figure = Figure::Time { ours: times.figure(name, contender)?, against };
            let row = Row::new(format!("{name}, {how}"), kernel_name(), figure);
            let reach = if name.starts_with("tc_") { 3.0 } else { 1.5 };
            rows.push(Row { bar: Some(Bar::Ratio(1.0)), reach: Some(Bar::Ratio(reach)), ..row });
        }
    }
    Ok(rows.into())
}

/// Without the feature the kernel is not available.
#[cfg(not(feature = "kernel"))]
struct Kernel(std::convert::Infallible);

#[cfg(not(feature = "kernel"))]
#[allow(clippy::unnecessary_wraps, reason = "as with the feature")]
fn in_kernel(_: &Object) -> Result<Option<Kernel>, Box<dyn Error>> {
    Ok(None)
}

#[cfg(not(feature = "kernel"))]
fn kernel_name() -> String {
    String::new()
}

#[cfg(not(feature = "kernel"))]
impl Kernel {
    fn work(&self, _: usize, _: usize) -> Work<'_> {
        match self.0 {}
    }
}
