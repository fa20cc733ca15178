//! Encoding of instructions to slots.

use super::insn::{Insn, RawInsn};
use crate::form::Operands;
use crate::table::{Encoding, Field, row_of};

/// Reasons why an instruction cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// [`Insn`] can represent it, but BPF does not have it: a sign extension from or to an invalid size, a byte swap of one byte, a
    /// legacy packet load of eight.
    #[error("BPF has no instruction for {0:?}")]
    NoEncoding(Insn),
}

/// An encoded instruction: one slot, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    pub(crate) first: RawInsn,
    pub(crate) second: Option<RawInsn>,
}

impl Slots {
    /// The slots in order.
    pub fn iter(&self) -> impl Iterator<Item = RawInsn> + use<> {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

impl IntoIterator for Slots {
    type Item = RawInsn;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<RawInsn>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

/// Encodes one instruction.
///
/// # Errors
/// For an instruction that [`Insn`] can represent but BPF does not have.
pub fn encode(insn: &Insn) -> Result<Slots, EncodeError> {
    let (form, operands) = insn.split();
    let row = row_of(form).ok_or(EncodeError::NoEncoding(*insn))?;
    Ok(row.slots(&operands))
}

/// Encodes a sequence of instructions.
///
/// # Errors
/// For the first instruction that [`Insn`] can represent but BPF does not have.
pub fn encode_all<'a>(insns: impl IntoIterator<Item = &'a Insn>) -> Result<Vec<RawInsn>, EncodeError> {
    let mut raw = Vec::new();
    for insn in insns {
        raw.extend(encode(insn)?);
    }
    Ok(raw)
}

impl Encoding {
    /// Encodes this row with these operands.
    pub(crate) fn slots(&self, operands: &Operands) -> Slots {
        let first = RawInsn {
            opcode: self.opcode,
            dst: self.dst.fill(operands.dst.number()),
            src: self.src.fill(operands.src.number()),
            offset: self.offset.fill(operands.offset),
            imm: self.imm.fill(operands.imm),
        };
        let second =
            self.next_imm.map(|field| RawInsn { imm: field.fill(operands.next_imm), ..RawInsn::default() });
        Slots { first, second }
    }
}

impl Field {
    /// The encoded value of the field. A selector always fits: a test checks the table.
    fn fill<T: Default + TryFrom<i32>>(self, operand: T) -> T {
        match self {
            Self::Zero => T::default(),
            Self::Any => operand,
            Self::Is(value) => T::try_from(value).unwrap_or_default(),
        }
    }
}
