//! A hostile embedder: random sequences of public API operations, each in a separate process, with oracles other than the
//! engines: a model of maps, counters, memory, time, and signals from guard pages.
//!
//! An operation depends only on the seed and on its place in the sequence, and creates what it needs. Therefore operations
//! can be skipped without a change to the others, which makes shrinking simple.

mod campaign;
mod end;
mod finding;
mod loaded;
mod op;
mod ports;
mod process;
mod programs;
mod reenter;
mod rings;
mod stall;
mod stalls;
mod system;
mod table;
mod tables;
mod threads;
mod timers;
mod watch;
mod world;

pub use campaign::{Campaign, Failure, Found};
pub use world::Settings;

use fastrand::Rng;
use finding::REFUSED;
use op::Op;
use world::World;

/// Operations that are drawn together.
struct Theme {
    name: &'static str,
    ops: &'static [Op],
}

const THEMES: &[Theme] = &[
    Theme { name: "maps", ops: tables::OPS },
    Theme { name: "programs", ops: programs::OPS },
    Theme { name: "timers", ops: timers::OPS },
    Theme { name: "stalls", ops: stalls::OPS },
    Theme { name: "rings", ops: rings::OPS },
    Theme { name: "ports", ops: ports::OPS },
    Theme { name: "reenter", ops: reenter::OPS },
    Theme { name: "process", ops: process::OPS },
    Theme { name: "threads", ops: threads::OPS },
];

/// The names of the themes, and then those of the operations.
#[must_use]
pub fn themes() -> Vec<&'static str> {
    let ops = THEMES.iter().flat_map(|theme| theme.ops).map(|op| op.name);
    THEMES.iter().map(|theme| theme.name).chain(ops).collect()
}

/// Maximum number of operations of a sequence.
const MOST: usize = 24;

/// A mix of two numbers (splitmix64's).
fn mix(seed: u64, index: u64) -> u64 {
    let mut z =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 30).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The operations of a sequence, of one to three themes.
fn sequence(seed: u64, only: Option<&str>) -> Vec<&'static Op> {
    let mut rng = Rng::with_seed(mix(seed, u64::MAX - 1));
    let all = || THEMES.iter().flat_map(|theme| theme.ops.iter().map(move |op| (theme.name, op)));
    let ops: Vec<&Op> = match only {
        Some(name) => {
            all().filter(|(theme, op)| *theme == name || op.name == name).map(|(_, op)| op).collect()
        }
        None => {
            (0..rng.usize(1..=3)).filter_map(|_| rng.choice(THEMES)).flat_map(|theme| theme.ops).collect()
        }
    };
    let total: u32 = ops.iter().map(|op| op.weight).sum();
    let draw = |rng: &mut Rng| {
        let mut left = rng.u32(0..total);
        *ops.iter()
            .find(|op| {
                let found = left < op.weight;
                left = left.saturating_sub(op.weight);
                found
            })
            .unwrap_or(&ops[0])
    };
    (0..rng.usize(4..=MOST)).map(|_| draw(&mut rng)).collect()
}

/// The names of a sequence's operations.
#[must_use]
pub fn names(seed: u64, theme: Option<&str>) -> Vec<&'static str> {
    sequence(seed, theme).iter().map(|op| op.name).collect()
}

/// Runs a sequence in this process, without the operations for which `keep` returns false. Announces each operation before
/// it runs, so that the parent knows which one ended the process.
///
/// # Errors
/// The oracle's message.
pub fn run(settings: &Settings, announce: impl Fn(&str), keep: impl Fn(usize) -> bool) -> Result<(), String> {
    let mut world = World::new(settings);
    for (index, op) in sequence(settings.seed, settings.theme.as_deref()).into_iter().enumerate() {
        if !keep(index) {
            continue;
        }
        announce(&format!("{index} {}", op.name));
        watch::watch(op.name);
        let found = (op.run)(&mut world, &mut Rng::with_seed(mix(settings.seed, index as u64)));
        match found {
            Err(finding) if finding.starts_with(REFUSED) && world.may_refuse() => {}
            found => found.map_err(|finding| format!("{}: {finding}", op.name))?,
        }
    }
    announce("- end");
    watch::watch("end");
    end::check(world, &mut Rng::with_seed(mix(settings.seed, u64::MAX)))
        .map_err(|finding| format!("end: {finding}"))
}
