//! Order of programs by run priority, as libxdp sorts them.

use std::cmp::Ordering;

use super::run_config::RunConfig;

/// A program with the properties by which libxdp orders programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// Name of its function.
    pub name: String,
    /// Run priority and chain call actions.
    pub config: RunConfig,
    /// Length of its main function in slots, as in the object.
    pub slots: usize,
    /// Time of attachment, for programs that are in the chain already: lower numbers are earlier.
    pub attached: Option<u64>,
}

/// Tie-breaker between two programs of the same priority (`cmp_xdp_programs` in `lib/libxdp/libxdp.c`, and
/// `lib/libxdp/protocol.org`, "Loading and attaching component programs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tie {
    /// Their names, compared bytewise.
    Name,
    /// One is in the chain already, and comes first.
    Attached,
    /// Both are new, and the shorter one comes first.
    Size,
    /// Both are in the chain, and the one attached earlier comes first. libxdp compares the kernel's tags before that, which
    /// programs outside of a kernel do not have.
    Time,
    /// None: they stay in the given order.
    Given,
}

/// libxdp's comparison, and the tie-breaker if the priorities are equal.
pub(crate) fn compare(a: &Entrant, b: &Entrant) -> (Ordering, Option<Tie>) {
    let sizes = || match (a.attached, b.attached) {
        (None, None) => a.slots.cmp(&b.slots),
        _ => Ordering::Equal,
    };
    let times = || match (a.attached, b.attached) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    let rules: [(Option<Tie>, &dyn Fn() -> Ordering); 5] = [
        (None, &|| a.config.priority.cmp(&b.config.priority)),
        (Some(Tie::Name), &|| a.name.as_bytes().cmp(b.name.as_bytes())),
        (Some(Tie::Attached), &|| a.attached.is_none().cmp(&b.attached.is_none())),
        (Some(Tie::Size), &sizes),
        (Some(Tie::Time), &times),
    ];
    let decided = rules.into_iter().map(|(tie, rule)| (rule(), tie)).find(|(order, _)| order.is_ne());
    decided.unwrap_or((Ordering::Equal, Some(Tie::Given)))
}
