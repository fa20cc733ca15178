use thiserror::Error;

use super::{Gpr, Label};

/// Finished code: it runs wherever it is placed, once its relocations are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The instructions. Their address must be a multiple of the largest alignment asked for.
    pub bytes: Vec<u8>,
    /// Distances to fixed addresses that are still missing, by rising offset.
    pub relocations: Vec<Relocation>,
    /// Where marked places came to be, by rising offset and in the order they were made.
    pub marks: Vec<Mark>,
    /// Offsets by number of label; `u32::MAX` where a label was not bound.
    pub(super) labels: Vec<u32>,
}

impl Code {
    /// Bytes between the start of the code and a label, if it is one of this code's and was bound.
    pub fn offset(&self, label: Label) -> Option<u32> {
        self.labels.get(label.0 as usize).copied().filter(|&offset| offset != u32::MAX)
    }
}

/// What came from a place that was [marked](super::Assembler::mark) begins here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Bytes from the start of the code.
    pub offset: u32,
    /// As given.
    pub tag: u32,
}

/// Four bytes that depend on where the code is placed: the distance from their end to `target`, as R_X86_64_PC32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Bytes from the start of the code to the four.
    pub offset: u32,
    /// The instruction.
    pub kind: RelocationKind,
    /// The address to reach.
    pub target: u64,
}

impl Relocation {
    /// What to store for code at address `start`, or nothing if the target is farther than 2 GiB away.
    pub fn distance(&self, start: u64) -> Option<i32> {
        let end = start.wrapping_add(u64::from(self.offset) + 4);
        i32::try_from(self.target.wrapping_sub(end) as i64).ok()
    }
}

/// Which instruction a relocation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// `call rel32`
    Call,
    /// `jmp rel32` or `jcc rel32`
    Jump,
}

/// What is wrong with what an [`Assembler`](super::Assembler) was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AssembleError {
    #[error("label {} is used and not bound", label.0)]
    Unbound { label: Label },
    #[error("label {} is bound twice", label.0)]
    BoundTwice { label: Label },
    #[error("rsp is the index of a memory operand, after {offset} bytes")]
    RspIndex { offset: u32 },
    #[error("lock is no prefix for cmp, after {offset} bytes")]
    LockedCompare { offset: u32 },
    #[error("alignment to 2 to the {log2} is more than a page")]
    Alignment { log2: u8 },
    #[error("{register:?} was overwritten while its value was needed, after {offset} bytes")]
    Overwritten { register: Gpr, offset: u32 },
    #[error("code may grow to {bytes} bytes, more than 2 GiB")]
    TooLong { bytes: u64 },
}
