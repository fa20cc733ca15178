//! Installed code.

use std::fmt;
use std::ops::Range;

use crate::arena::Extent;
use crate::code::Function;
use crate::names::Registration;
use paceline_epoch::Domain;

/// Code in an arena, ready to run. It stays where it is.
///
/// Dropping a block retires it: the code stays runnable until no worker is pinned that was at that time, then guard
/// bytes replace it and the memory is used again. Who drops it has made sure that nobody finds its address any more.
pub struct CodeBlock {
    /// Always there, but while the block is dropped.
    held: Option<Held>,
    range: Range<usize>,
    domain: Domain,
}

/// What goes when the grace period is over, in this order: code keeps its name as long as it may run.
struct Held {
    names: Option<Registration>,
    _extent: Extent,
}

impl CodeBlock {
    pub(crate) fn new(
        extent: Extent,
        range: Range<usize>,
        names: Option<Registration>,
        domain: Domain,
    ) -> Self {
        Self { held: Some(Held { names, _extent: extent }), range, domain }
    }

    /// Where the code begins, to make a function pointer from.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.range.start)
    }

    /// Where the code begins, as a number.
    #[must_use]
    pub fn address(&self) -> usize {
        self.range.start
    }

    /// The code as it is executed, relocations applied.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: executable memory can be read, and code is neither written nor freed as long as its block is there.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// What the code is made of, as it was installed.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.held.as_ref().and_then(|held| held.names.as_ref()).map_or(&[], Registration::functions)
    }

    /// Bytes of code.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether an address lies in the code.
    #[must_use]
    pub fn contains(&self, pc: usize) -> bool {
        self.range.contains(&pc)
    }
}

impl Drop for CodeBlock {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.domain.retire_inert(held, self.range.len());
        }
    }
}

impl fmt::Debug for CodeBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeBlock").field("range", &self.range).finish_non_exhaustive()
    }
}
