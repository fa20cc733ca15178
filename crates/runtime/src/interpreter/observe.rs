//! The state of a run before each instruction, for tests and traces.

use std::sync::Arc;

use crate::host::Host;
use crate::region::Regions;
use crate::stack::STACK_FRAME;
use paceline_frame::Redirect;
use paceline_isa::Insn;
use paceline_maps::Map;
use paceline_spec::{ObjectKind, ProgramSpec};

use crate::interpreter::callers::Caller;
use crate::interpreter::image::Image;

/// Decision of an observer about the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Executes it.
    Follow,
    /// Takes the other side if it is a conditional jump, and executes it otherwise.
    Invert,
    /// Ends the run, with the fault of a program that runs too long.
    Stop,
}

/// Called before each instruction of a run.
pub type Observer<'o> = dyn FnMut(&Observed<'_>) -> Steer + 'o;

/// Memory at an address, as the program may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// The context, at an offset.
    Context(u64),
    /// The packet, at an offset from its first byte.
    Packet(usize),
    /// The stack.
    Stack,
    /// Anything else: values of maps, records, memory of helpers.
    Other,
}

/// The machine of the plain interpreter before it executes an instruction.
pub struct Observed<'a> {
    pub(crate) image: &'a Image,
    /// Slot of the instruction.
    pub slot: usize,
    /// `r0` to `r10`; addresses are real ones, except [that of the context](Self::context).
    pub registers: &'a [u64; 11],
    pub(crate) callers: &'a [Caller],
    pub(crate) regions: &'a Regions,
    pub(crate) host: &'a Host,
}

impl std::fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

impl Observed<'_> {
    /// The instruction.
    #[must_use]
    pub fn insn(&self) -> Option<&Insn> {
        self.image.code.get(self.slot)
    }

    /// The program that runs: the one that was called, or one that it tail called.
    #[must_use]
    pub fn program(&self) -> &Arc<ProgramSpec> {
        &self.image.spec
    }

    /// Number of the program in this process ([`Image::id`]).
    #[must_use]
    pub fn program_id(&self) -> u32 {
        self.image.id
    }

    /// The region of an address.
    #[must_use]
    pub fn location(&self, address: u64) -> Location {
        if let Some(offset) = self.regions.context_offset(address) {
            return Location::Context(offset);
        }
        if let Some([_, data, end]) = self.packet()
            && (data..end).contains(&address)
        {
            return Location::Packet((address - data) as usize);
        }
        let top = self.host.stack.top();
        let deepest = self.host.run.depth() + self.depth() + 1;
        match (top.wrapping_sub((deepest * STACK_FRAME) as u64)..top).contains(&address) {
            true => Location::Stack,
            false => Location::Other,
        }
    }

    /// The packet's bytes, as the program has left them so far.
    #[must_use]
    pub fn packet_bytes(&self) -> Option<&[u8]> {
        Some(self.regions.frame()?.packet())
    }

    /// The bytes before the packet, metadata included, as the program has left them so far.
    #[must_use]
    pub fn headroom(&self) -> Option<&[u8]> {
        Some(self.regions.frame()?.headroom())
    }

    /// The packet's metadata, as the program has left it so far.
    #[must_use]
    pub fn metadata(&self) -> Option<&[u8]> {
        Some(self.regions.frame()?.metadata())
    }

    /// The redirect target that the program has stored so far, whatever its verdict will be.
    #[must_use]
    pub fn redirect(&self) -> Option<Redirect> {
        self.regions.frame()?.redirect()
    }

    /// The map that a register's value stands for.
    #[must_use]
    pub fn map(&self, handle: u64) -> Option<&Arc<Map>> {
        self.regions.map(handle)
    }

    /// The map of an index in the program's instructions.
    #[must_use]
    pub fn map_at(&self, index: i32) -> Option<&Arc<Map>> {
        self.image.maps.get(usize::try_from(index).ok()?)
    }

    /// Copies bytes that the program may read.
    #[must_use]
    pub fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let allowed = self.regions.allows(address, len as u64, crate::region::Access::Read);
        allowed.then(|| {
            let mut bytes = vec![0; len];
            // SAFETY: the program may read them, and nothing else runs it.
            unsafe { crate::memory::copy_from(&mut bytes, address) };
            bytes
        })
    }

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
        self.host.stack.top().wrapping_sub((depth * STACK_FRAME) as u64)
    }

    /// Eight bytes of the stack of the function at a call depth, in native order: word 0 ends at its frame pointer.
    #[must_use]
    pub fn stack_word(&self, depth: usize, word: usize) -> Option<u64> {
        self.host.stack.word(depth, word)
    }
}
