//! Installed code.

use std::fmt;
use std::ops::Range;

use crate::arena::Extent;
use crate::epoch::Domain;

/// Code in an arena, ready to run. It stays where it is.
///
/// Dropping a block retires it: the code stays runnable until no worker is pinned that was at that time, then guard
/// bytes replace it and the memory is used again. Who drops it has made sure that nobody finds its address any more.
pub struct CodeBlock {
    /// Always there, but while the block is dropped.
    extent: Option<Extent>,
    range: Range<usize>,
    domain: Domain,
}

impl CodeBlock {
    pub(crate) fn new(extent: Extent, len: usize, domain: Domain) -> Self {
        let address = extent.address();
        Self { extent: Some(extent), range: address..address + len, domain }
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
        if let Some(extent) = self.extent.take() {
            self.domain.retire(extent);
        }
    }
}

impl fmt::Debug for CodeBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeBlock").field("range", &self.range).finish_non_exhaustive()
    }
}
