//! Engines that run cases.

mod chains;
mod classic;
mod kernel;
mod maps;
mod namespace;
mod ours;

use crate::case::Case;
use crate::outcome::Outcome;

pub use chains::ChainEngine;
pub use classic::{LibpcapEngine, SocketEngine};
pub use kernel::KernelEngine;
pub use maps::{fill_map, map_contents};
pub use ours::OurEngine;

/// Why an engine cannot run a case at all, for a reason that lies in its nature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The kernel does not have the case's network.
    #[error("the kernel has no such network")]
    Network,
    /// Neither kernel nor verifier know programs over plain memory.
    #[error("programs over plain memory are not for it")]
    RawMemory,
    /// The kernel's test run does not take packets of this length.
    #[error("a test run takes no packet of {0} bytes")]
    PacketLength(usize),
    /// A context field cannot be set.
    #[error("{0} cannot be set")]
    ContextField(&'static str),
    /// libpcap has another rule for what the program does.
    #[error("libpcap has another rule")]
    OtherRule,
    /// A kernel function is not there, in words.
    #[error("{0}")]
    NoKernelFunction(String),
    /// The engine is not for this machine, or not there yet.
    #[error("engine {0} is not available")]
    Unavailable(paceline_vm::Engine),
    /// The program is accepted, and the engine does not have all that it needs.
    #[error("needs what it does not have")]
    Lacks,
    /// libxdp's dispatcher does not have such a chain, for a reason in words.
    #[error("the chain {0}")]
    NoDispatcher(&'static str),
    /// The verifier is asked elsewhere, and nothing is run.
    #[error("nothing is run")]
    NothingToRun,
}

/// The fields of an `sk_buff` that a test run tells of, in the words of cases.
fn skb(mark: u32, priority: u32, cb: [u32; 5], tstamp: u64) -> String {
    let names = ["mark", "priority", "cb0", "cb1", "cb2", "cb3", "cb4", "tstamp"].into_iter();
    let values = [mark, priority].into_iter().chain(cb).map(u64::from).chain([tstamp]);
    let fields: Vec<_> = names
        .zip(values)
        .filter(|(_, value)| *value != 0)
        .map(|(name, value)| format!("{name} {value:#x}"))
        .collect();
    if fields.is_empty() { "none".to_owned() } else { fields.join(" ") }
}

/// Something that runs cases.
pub trait Engine: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Whether what a case says of the engine of this name is for it.
    fn answers_to(&self, name: &str) -> bool {
        name == self.name()
    }

    /// Whether it has to do with a case at all.
    fn concerns(&self, _case: &Case) -> bool {
        true
    }

    /// Whether it runs chains, and nothing else.
    fn runs_chains(&self) -> bool {
        false
    }

    /// Whether it verifies programs before it runs them, so that a case's `verifier` line is for it.
    fn verifies(&self) -> bool;

    /// Runs all programs and packets of a case.
    ///
    /// # Errors
    /// It cannot run such a case.
    fn run(&self, case: &Case) -> Result<Outcome, Unsupported>;
}

/// All engines of this machine: ours, the oracle first, and the kernel if it can be asked.
#[must_use]
pub fn available() -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> =
        OurEngine::all().map(|engine| Box::new(engine) as Box<dyn Engine>).collect();
    engines.extend(ChainEngine::all().map(|engine| Box::new(engine) as Box<dyn Engine>));
    match crate::kernel::probe() {
        Ok(()) => {
            engines.push(Box::new(KernelEngine));
            engines.push(Box::new(ChainEngine::dispatcher()));
        }
        Err(reason) => crate::skip("kernel", &reason),
    }
    match SocketEngine::new() {
        Ok(engine) => engines.push(Box::new(engine)),
        Err(reason) => crate::skip("socket", &reason),
    }
    match LibpcapEngine::new() {
        Ok(engine) => engines.push(Box::new(engine)),
        Err(reason) => crate::skip("libpcap", &reason),
    }
    engines
}
