//! An operation of the threaded interpreter in memory.

use crate::host::Host;
use crate::machine::FRAME_POINTER;
use paceline_frame::Frame;

/// Code that executes an operation: takes its address, the host of the machine, the packet, and the window of the running function. The
/// result is for its `Dispatch`.
pub(super) type Handler = unsafe extern "C" fn(*const Op, *mut Host, Packet, *mut u64) -> u64;

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
        // SAFETY: guaranteed by the caller.
        unsafe { Self::in_frame((*host).frame()) }
    }

    /// # Safety
    /// The frame must be the one that the host runs.
    #[inline(always)]
    pub(super) unsafe fn in_frame(frame: *const Frame) -> Self {
        // SAFETY: guaranteed by the caller.
        let frame = unsafe { &*frame };
        let start = frame.data() as u64;
        Self { start, len: frame.data_end() as u64 - start }
    }
}

/// The register of moves, and of results that nobody has.
pub(super) const SCRATCH: u8 = 30;

const _: () = assert!(SCRATCH < FRAME_POINTER);

/// Bytes of an operation that hold numbers of registers: see `Kind` of the threaded interpreter.
pub(super) const DST: u8 = 0;
pub(super) const SRC: u8 = 1;
pub(super) const OTHER: u8 = 2;
pub(super) const MORE: u8 = 3;

/// An operation, 16 bytes. Those with a 64-bit operand take two; the second one's `head` holds it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    pub(super) head: Head,
    bytes: [u8; 8],
}

const _: () = assert!(size_of::<Op>() == 16);

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Head {
    pub(super) handler: Handler,
    pub(super) word: u64,
}

impl Op {
    pub(super) const fn new(handler: Handler, bytes: [u8; 8]) -> Self {
        Self { head: Head { handler }, bytes }
    }

    /// The second part of an operation.
    pub(super) const fn data(word: u64, imm: i32) -> Self {
        let [a, b, c, d] = imm.to_ne_bytes();
        Self { head: Head { word }, bytes: [0, 0, 0, 0, a, b, c, d] }
    }

    /// The register in a byte.
    #[inline(always)]
    pub(super) const fn register(&self, place: u8) -> u8 {
        self.bytes[place as usize]
    }

    /// The registers of the arguments of a call.
    #[inline(always)]
    pub(super) const fn args(&self) -> [u8; 5] {
        let [_, a, b, c, d, e, ..] = self.bytes;
        [a, b, c, d, e]
    }

    #[inline(always)]
    pub(super) const fn imm(&self) -> i32 {
        let [.., a, b, c, d] = self.bytes;
        i32::from_ne_bytes([a, b, c, d])
    }

    /// Adds to the immediate.
    pub(super) fn add_imm(&mut self, more: i32) {
        let imm = self.imm().wrapping_add(more);
        self.bytes[4..].copy_from_slice(&imm.to_ne_bytes());
    }

    /// An offset in bytes beside an immediate, in the place of the last registers.
    #[inline(always)]
    pub(super) const fn offset(&self) -> i16 {
        i16::from_ne_bytes([self.bytes[OTHER as usize], self.bytes[MORE as usize]])
    }

    /// A short immediate beside the distance of a jump.
    #[inline(always)]
    pub(super) const fn short(&self) -> u16 {
        self.offset().cast_unsigned()
    }
}
