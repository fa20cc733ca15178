//! The state of a run before each instruction, for tests and traces.

use paceline_runtime::host::Host;
use paceline_runtime::region::Regions;
use paceline_runtime::stack::STACK_FRAME;
use paceline_spec::ObjectKind;

use crate::plain::Caller;

/// The machine of the plain interpreter before it executes an instruction.
pub struct Observed<'a> {
    /// Slot of the instruction.
    pub slot: usize,
    /// `r0` to `r10`; addresses are real ones.
    pub registers: &'a [u64; 11],
    pub(crate) callers: &'a [Caller],
    pub(crate) regions: &'a Regions,
    pub(crate) host: &'a Host,
}

impl Observed<'_> {
    /// Number of active functions besides the running one.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.callers.len()
    }

    /// The slots of the calls that have not returned, outermost first.
    pub fn calls(&self) -> impl Iterator<Item = usize> {
        self.callers.iter().map(|caller| caller.slot.wrapping_sub(1))
    }

    /// Address of the context; 0 if there is none.
    #[must_use]
    pub fn context(&self) -> u64 {
        self.regions.context.start
    }

    /// Addresses of the metadata, the packet and its end, as the context returns them now.
    #[must_use]
    pub fn packet(&self) -> Option<[u64; 3]> {
        let frame = self.regions.frame()?;
        Some([frame.data_meta() as u64, frame.data() as u64, frame.data_end() as u64])
    }

    /// Whether the program has an object of a kind at an address.
    #[must_use]
    pub fn has_object(&self, kind: ObjectKind, address: u64) -> bool {
        self.regions.object(address, |found| found == kind).is_some()
    }

    /// The frame pointer of the function at a call depth.
    #[must_use]
    pub fn frame_pointer(&self, depth: usize) -> u64 {
        self.host.stack_top().wrapping_sub((depth * STACK_FRAME) as u64)
    }

    /// Eight bytes of the stack of the function at a call depth, in native order: word 0 ends at its frame pointer.
    #[must_use]
    pub fn stack_word(&self, depth: usize, word: usize) -> Option<u64> {
        self.host.stack_word(depth, word)
    }
}
