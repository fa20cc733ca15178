//! Installed code.

use std::fmt;
use std::ops::Range;

use crate::exec::code::Function;
use crate::exec::names::Registration;
use crate::exec::space::Extent;
use paceline_epoch::Domain;

/// Executable code in an arena, at a fixed address.
///
/// Dropping a block retires it: the code stays executable until no worker is pinned that was pinned at that time, then guard bytes
/// overwrite it and the memory is reused. The caller must have unpublished its address before.
pub struct CodeBlock {
    /// `None` only while the block is dropped.
    held: Option<Held>,
    range: Range<usize>,
    domain: Domain,
}

/// Resources to release after the grace period, in this order: code keeps its name as long as it may run.
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

    /// Start of the code, for conversion to a function pointer.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        std::ptr::with_exposed_provenance(self.range.start)
    }

    /// Start address of the code.
    #[must_use]
    pub fn address(&self) -> usize {
        self.range.start
    }

    /// The code as executed, with relocations applied.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: executable memory is readable, and code is neither written nor freed while its block exists.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// The functions of the code, as installed.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.held.as_ref().and_then(|held| held.names.as_ref()).map_or(&[], Registration::functions)
    }

    /// Size of the code in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the code is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether an address is within the code.
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
