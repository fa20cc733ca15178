//! Operations in memory.

use paceline_runtime::host::Host;

use super::kind::{KINDS, Kind, MAX_KINDS};

/// Code that executes an operation: takes its address, the host of the machine, and the packet. The result is for its
/// [`Dispatch`](super::handlers::Dispatch).
pub(super) type Handler = unsafe extern "C" fn(*const Op, *mut Host, Packet) -> u64;

/// The packet of the host's frame: two arguments, which handlers have in registers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Packet {
    /// Address of its first byte.
    pub(super) start: u64,
    /// Bytes.
    pub(super) len: u64,
}

impl Packet {
    /// # Safety
    /// The host must run a packet.
    #[inline(always)]
    pub(super) unsafe fn of(host: *const Host) -> Self {
        // SAFETY: the caller vouches for it.
        let frame = unsafe { &*(*host).frame };
        let start = frame.data() as u64;
        Self { start, len: frame.data_end() as u64 - start }
    }
}

/// An operation, 16 bytes. Those with a 64-bit operand take two; the second one's `head` holds it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    pub(super) head: Head,
    /// A register's number.
    pub(super) dst: u8,
    /// A register's number.
    pub(super) src: u8,
    /// Offset of an address in bytes; distance of a jump in operations.
    pub(super) offset: i16,
    pub(super) imm: i32,
}

const _: () = assert!(size_of::<Op>() == 16);

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Head {
    pub(super) handler: Handler,
    pub(super) word: u64,
}

impl Op {
    pub(super) const fn new(handler: Handler) -> Self {
        Self { head: Head { handler }, dst: 0, src: 0, offset: 0, imm: 0 }
    }

    /// The second part of an operation.
    pub(super) const fn data(word: u64, imm: i32) -> Self {
        Self { head: Head { word }, dst: 0, src: 0, offset: 0, imm }
    }
}

/// Kind and weight of an operation, for counting and for dispatch by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The code of its [`Kind`](super::kind::Kind), of the fusion if it starts one; [`MAX_KINDS`] for the second
    /// part of an operation.
    code: u16,
    /// The code of the operation alone.
    alone: u16,
    /// Number of instructions that the operation stands for, alone.
    pub(super) weight: u32,
}

impl Note {
    pub(super) fn new(code: u16, alone: u16, weight: u32) -> Self {
        Self { code, alone, weight }
    }

    /// The note of the second part of an operation, which is never executed.
    pub(super) fn second() -> Self {
        Self::new(MAX_KINDS as u16, MAX_KINDS as u16, 0)
    }

    /// The code of its kind; `None` for the second part of an operation.
    #[cfg(any(test, feature = "variants"))]
    pub(super) fn code(self) -> Option<u16> {
        Some(self.code).filter(|code| usize::from(*code) < MAX_KINDS)
    }

    /// The kind of the operation alone; `None` for the second part of an operation.
    pub(super) fn kind(self) -> Option<Kind> {
        KINDS.get(usize::from(self.alone()?)).copied()
    }

    /// The code of the operation alone; `None` for the second part of an operation.
    pub(super) fn alone(self) -> Option<u16> {
        Some(self.alone).filter(|code| usize::from(*code) < MAX_KINDS)
    }
}
