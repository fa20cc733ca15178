//! What an engine does for the test runner.

use crate::case::Case;
use crate::outcome::Outcome;

/// Reason why an engine can never run a case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The kernel cannot create the case's network.
    #[error("the kernel has no such network")]
    Network,
    /// Neither the kernel nor the verifier supports programs over plain memory.
    #[error("programs over plain memory are not for it")]
    RawMemory,
    /// The kernel's test run does not support packets of this length.
    #[error("a test run takes no packet of {0} bytes")]
    PacketLength(usize),
    /// A context field cannot be set.
    #[error("{0} cannot be set")]
    ContextField(&'static str),
    /// libpcap's rules differ from the kernel's for this program.
    #[error("libpcap has another rule")]
    OtherRule,
    /// A kernel function is missing; with its name.
    #[error("{0}")]
    NoKernelFunction(String),
    /// The engine does not exist on this machine.
    #[error("engine {0} is not available")]
    Unavailable(paceline_engine::Engine),
    /// The program is accepted, but needs a feature that the engine does not support.
    #[error("needs what it does not have")]
    Lacks,
    /// libxdp's dispatcher does not support this chain; with the reason.
    #[error("the chain {0}")]
    NoDispatcher(&'static str),
    /// The case only has a verdict of the verifier, which other engines test.
    #[error("nothing is run")]
    NothingToRun,
}

/// The fields of an `sk_buff` that a test run returns, in the syntax of cases.
pub(super) fn skb(mark: u32, priority: u32, cb: [u32; 5], tstamp: u64) -> String {
    let names = ["mark", "priority", "cb0", "cb1", "cb2", "cb3", "cb4", "tstamp"].into_iter();
    let values = [mark, priority].into_iter().chain(cb).map(u64::from).chain([tstamp]);
    let fields: Vec<_> = names
        .zip(values)
        .filter(|(_, value)| *value != 0)
        .map(|(name, value)| format!("{name} {value:#x}"))
        .collect();
    if fields.is_empty() { "none".to_owned() } else { fields.join(" ") }
}

/// An engine for cases.
pub trait Engine: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Whether engine lines of this name apply to it.
    fn answers_to(&self, name: &str) -> bool {
        name == self.name()
    }

    /// Whether a case concerns it at all.
    fn concerns(&self, _case: &Case) -> bool {
        true
    }

    /// Whether it runs only chains.
    fn runs_chains(&self) -> bool {
        false
    }

    /// Whether it verifies programs before it runs them, so that a case's `verifier` line applies to it.
    fn verifies(&self) -> bool;

    /// Runs all programs and packets of a case.
    ///
    /// # Errors
    /// It can never run such a case.
    fn run(&self, case: &Case) -> Result<Outcome, Unsupported>;
}
