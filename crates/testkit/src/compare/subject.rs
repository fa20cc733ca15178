//! What can be compared, and what it leaves.

use paceline::{Redirect, RedirectTarget};

use super::work::Work;
use crate::Contents;

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Low 32 bits of `r0`.
    pub code: u32,
    /// All 64 bits, if the engine returns them.
    pub r0: Option<u64>,
    /// The packet.
    pub data: Vec<u8>,
    /// The metadata before it.
    pub meta: Vec<u8>,
    /// Redirect target: whether it is a map's element, its key or interface, and flags; if the engine reports it.
    pub redirect: Option<Option<(bool, u32, u32)>>,
}

impl Left {
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        (self.code, &self.data, &self.meta) == (other.code, &other.data, &other.meta)
            && same(&self.r0, &other.r0)
            && same(&self.redirect, &other.redirect)
    }
}

pub(crate) fn redirect_of(redirect: Option<Redirect>) -> Option<(bool, u32, u32)> {
    redirect.map(|redirect| match redirect.target {
        RedirectTarget::Interface { ifindex } => (false, ifindex, redirect.flags),
        RedirectTarget::Map { key, .. } => (true, key, redirect.flags),
    })
}

/// Reason why an engine did not finish a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// It refuses the program.
    #[error("does not take the program: {0}")]
    Refused(String),
    /// A run faulted.
    #[error("run {run}: {reason}")]
    Run {
        /// Index of the run.
        run: usize,
        /// The fault.
        reason: String,
    },
}

/// An engine that runs work.
pub trait Subject {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether it may refuse programs that our verifier accepts.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Runs the program on all packets, over maps with the contents of the work. Stores the result of each run in `left`
    /// (one per packet). Returns the contents of the maps afterwards (`None` for maps that it does not report).
    ///
    /// # Errors
    /// [`Stopped`].
    fn run(&mut self, work: &Work, left: &mut [Left]) -> Result<Vec<Option<Contents>>, Stopped>;
}
