//! Test tools of Paceline: text cases, the kernel as oracle, random programs, and the conformance plugin.
//!
//! Unpublished. `tests/cases/README.md` describes the format of text cases.
#![deny(unsafe_code)]
#![allow(missing_debug_implementations, reason = "what tests are made of is not published")]

pub mod adapted;
pub mod any_engine;
pub mod case;
pub mod checked;
pub mod child;
pub mod classic;
pub mod compare;
pub mod compiled;
pub mod conformance;
pub mod console;
pub mod cost;
pub mod counted;
pub mod determinize;
pub mod dispatcher;
pub mod doors;
pub mod embed;
pub mod engine;
pub mod export;
pub mod generate;
mod hex;
pub mod inputs;
pub mod ir;
pub mod kernel;
pub mod namespace;
pub mod object_runs;
pub mod outcome;
pub mod random;
pub mod redirects;
pub mod runner;
pub mod sources;
pub mod staged;
pub mod text;
pub mod traffic;
pub mod verdict;
pub mod whole;
pub mod wire;

use std::fmt;

pub use any_engine::AnyEngine;
pub use paceline_kernel::{Contents, has_byte_contents};

/// Names of all engines that a case may name in an engine line.
pub const ENGINES: &[&str] = &[
    "plain",
    "kernel",
    "paceline",
    "threaded",
    "ir",
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

/// Reports on standard error that a test is skipped.
///
/// # Panics
/// If `PACELINE_REQUIRE_ALL=1` is set, so that no test is skipped on a machine that must run all.
#[allow(clippy::print_stderr, reason = "tests say so there")]
pub fn skip(name: &str, reason: &dyn fmt::Display) {
    eprintln!("SKIP {name}: {reason}");
    let required = std::env::var("PACELINE_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "{name} must run (PACELINE_REQUIRE_ALL=1) but cannot: {reason}");
}
