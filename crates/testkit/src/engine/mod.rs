//! Engines that run cases.

mod kernel;
mod plain;
mod verifier;

use crate::case::Case;
use crate::outcome::Outcome;

pub use kernel::KernelEngine;
pub use plain::{PlainEngine, fill_map, map_contents};
pub use verifier::VerifierEngine;

/// Why an engine cannot run a case at all, for a reason that lies in its nature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The kernel runs nothing over plain memory.
    #[error("only engines of ours run programs over plain memory")]
    RawMemory,
    /// The kernel's test run does not take packets of this length.
    #[error("a test run takes no packet of {0} bytes")]
    PacketLength(usize),
    /// A context field cannot be set.
    #[error("{0} cannot be set")]
    ContextField(&'static str),
    /// A kernel function is not there, in words.
    #[error("{0}")]
    NoKernelFunction(String),
    /// Contents of a map cannot be set.
    #[error("map {map}: {what} cannot be put into it")]
    MapContents {
        /// Name of the map.
        map: String,
        /// What should have been put there.
        what: &'static str,
    },
}

/// Something that runs cases.
pub trait Engine: Send + Sync {
    /// Its name in cases.
    fn name(&self) -> &'static str;

    /// Whether it verifies programs before it runs them, so that a case's `verifier` line is for it.
    fn verifies(&self) -> bool;

    /// Runs all programs and packets of a case.
    ///
    /// # Errors
    /// It cannot run such a case.
    fn run(&self, case: &Case) -> Result<Outcome, Unsupported>;
}

/// All engines of this machine: ours, and the kernel if it can be asked.
#[must_use]
pub fn available() -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(PlainEngine), Box::new(VerifierEngine)];
    match crate::kernel::probe() {
        Ok(()) => engines.push(Box::new(KernelEngine)),
        Err(reason) => crate::skip("kernel", &reason),
    }
    engines
}
