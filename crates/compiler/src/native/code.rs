//! Finished code, and what both assemblers have in common.

use thiserror::Error;

/// A position in the code, which may be referenced before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub(crate) u32);

/// Finished code: position-independent once its relocations are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The instructions. Their address must be a multiple of the largest requested alignment.
    pub bytes: Vec<u8>,
    /// Relative references to fixed addresses, by increasing offset.
    pub relocations: Vec<Relocation>,
    /// Offsets of marks, increasing, in the order of calls of `mark`.
    pub marks: Vec<Mark>,
    /// Offsets by label number; `u32::MAX` for unbound labels.
    pub(crate) labels: Vec<u32>,
}

impl Code {
    /// Offset of a label in bytes, if it belongs to this code and was bound.
    pub fn offset(&self, label: Label) -> Option<u32> {
        self.labels.get(label.0 as usize).copied().filter(|&offset| offset != u32::MAX)
    }
}

/// Start of the code of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Offset from the start of the code in bytes.
    pub offset: u32,
    /// The tag as given.
    pub tag: u32,
}

/// A 32-bit field that depends on the code's address: the distance from its end to `target`, as R_X86_64_PC32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the field from the start of the code in bytes.
    pub offset: u32,
    /// Kind of the instruction.
    pub kind: RelocationKind,
    /// The target address.
    pub target: u64,
}

impl Relocation {
    /// The field's value for code at address `start`; `None` if the target is more than 2 GiB away.
    pub fn distance(&self, start: u64) -> Option<i32> {
        let end = start.wrapping_add(u64::from(self.offset) + 4);
        i32::try_from(self.target.wrapping_sub(end) as i64).ok()
    }
}

/// Kind of the instruction that contains a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// `call rel32`
    Call,
    /// `jmp rel32` or `jcc rel32`
    Jump,
}

/// An error in the input of an assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AssembleError {
    #[error("label {} is used and not bound", label.0)]
    Unbound { label: Label },
    #[error("label {} is bound twice", label.0)]
    BoundTwice { label: Label },
    #[error("alignment to 2 to the {log2} is more than a page")]
    Alignment { log2: u8 },
    #[error("an operand cannot be encoded, after {offset} bytes")]
    Operand { offset: u32 },
    #[error("code may grow to {bytes} bytes, more than 2 GiB")]
    TooLong { bytes: u64 },
}
