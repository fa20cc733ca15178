//! What Paceline is tested with: text cases, the kernel as oracle, random programs, and the conformance plugin.
//!
//! Nothing here is published. `tests/cases/README.md` has the format of the text cases.
#![deny(unsafe_code)]

pub mod adapted;
pub mod case;
pub mod child;
pub mod classic;
pub mod compare;
pub mod compiled;
pub mod conformance;
pub mod console;
pub mod cost;
pub mod determinize;
pub mod dispatcher;
pub mod embed;
pub mod engine;
pub mod generate;
pub mod kernel;
pub mod object_runs;
pub mod outcome;
pub mod random;
pub mod redirects;
pub mod runner;
pub mod sources;
pub mod text;
pub mod traffic;
pub mod verdict;
pub mod whole;
pub mod wire;

use std::collections::BTreeMap;
use std::fmt;

use paceline_spec::MapKind;

/// Elements of a map by key, for per-CPU maps the values of the CPU that ran the program. Queues and stacks have their
/// places as keys, 4 bytes big-endian, in the order of pops.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Names of all engines that a case may say something about.
pub const ENGINES: &[&str] = &[
    "plain",
    "kernel",
    "paceline",
    "threaded",
    "threaded-counted",
    "jit",
    "checked-jit",
    "socket",
    "libpcap",
    "chain-plain",
    "chain-threaded",
    "chain-jit",
    "chain-jit-uncounted",
    "chain-steps",
    "chain-dispatcher",
];

/// Says that a test is skipped, on standard error.
///
/// # Panics
/// If the environment has `PACELINE_REQUIRE_ALL=1`, so that a machine which should run everything does.
#[allow(clippy::print_stderr, reason = "tests say so there")]
pub fn skip(name: &str, reason: &dyn fmt::Display) {
    eprintln!("SKIP {name}: {reason}");
    let required = std::env::var("PACELINE_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "{name} must run (PACELINE_REQUIRE_ALL=1) but cannot: {reason}");
}

/// Whether the elements of a map are bytes that can be compared between engines: not programs, not maps, not buffers.
#[must_use]
pub fn has_byte_contents(kind: MapKind) -> bool {
    use MapKind as K;
    matches!(
        kind,
        K::Array
            | K::PerCpuArray
            | K::Hash
            | K::PerCpuHash
            | K::LruHash
            | K::LruPerCpuHash
            | K::LpmTrie
            | K::DevMap
            | K::DevMapHash
            | K::CpuMap
            | K::Queue
            | K::Stack
    )
}
