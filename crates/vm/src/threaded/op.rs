//! One operation as it lies in memory.

use super::kind::MAX_KINDS;
use super::machine::Machine;

/// Code that executes an operation: takes its address and the machine. Gives the operation to go on with, or null at
/// the end; where handlers jump to the next it is the last one of all that returns.
pub(super) type Handler = unsafe extern "C" fn(*const Op, *mut Machine) -> *const Op;

/// An operation, 16 bytes. Those with a 64-bit operand take two; the second one's `head` holds it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    pub(super) head: Head,
    /// A register's number.
    pub(super) dst: u8,
    /// A register's number.
    pub(super) src: u8,
    /// Added to an address, in bytes; of jumps, operations from this one.
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

/// What an operation is, beside it: for counting, and for dispatch by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The code of its [`Kind`](super::kind::Kind); [`MAX_KINDS`] for the second part of an operation.
    code: u16,
    /// Instructions that it stands for.
    pub(super) weight: u16,
}

impl Note {
    pub(super) fn new(code: u16, weight: u16) -> Self {
        Self { code, weight }
    }

    /// Of the second part of an operation, which is never executed.
    pub(super) fn second() -> Self {
        Self { code: MAX_KINDS as u16, weight: 0 }
    }

    /// The code of its kind; `None` for the second part of an operation.
    pub(super) fn code(self) -> Option<u16> {
        Some(self.code).filter(|code| usize::from(*code) < MAX_KINDS)
    }
}
