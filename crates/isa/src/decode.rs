//! Decoding of slots to instructions.
//!
//! Instructions that the kernel's verifier refuses for an unknown opcode or a nonzero reserved field are refused here, with one
//! exception: `callx`, which clang emits and the kernel does not know. Other rules of the verifier are not checked here: jump
//! targets, writes to `r10`, constant divisors of zero, constant shift counts, address spaces of casts.

use super::code::Code;
use super::insn::{Insn, RawInsn, Reg};
use crate::form::Operands;
use crate::table::{Encoding, Field, rows_of};

/// A field of a slot, in error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldName {
    /// The opcode byte.
    Opcode,
    /// The destination register field.
    Dst,
    /// The source register field.
    Src,
    /// The offset.
    Offset,
    /// The immediate.
    Imm,
}

impl std::fmt::Display for FieldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Opcode => "opcode",
            Self::Dst => "dst",
            Self::Src => "src",
            Self::Offset => "offset",
            Self::Imm => "imm",
        })
    }
}

/// Reasons why slots cannot be decoded. `slot` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The slot is out of bounds.
    #[error("slot {slot}: past the end of the program, which has {len} slots")]
    PastEnd {
        /// The requested slot.
        slot: usize,
        /// Number of slots in the program.
        len: usize,
    },
    /// The opcode does not exist.
    #[error("slot {slot}: unknown opcode {opcode:#04x}")]
    Opcode {
        /// Slot.
        slot: usize,
        /// The opcode.
        opcode: u8,
    },
    /// The opcode exists, but not with this value in the field that selects the operation: the kind of an atomic operation, the
    /// size of a sign extension or byte swap, the kind of a call or 64-bit immediate.
    #[error("slot {slot}: {field} {value:#x} selects no instruction of opcode {opcode:#04x}")]
    Selector {
        /// Slot.
        slot: usize,
        /// The opcode.
        opcode: u8,
        /// The selecting field.
        field: FieldName,
        /// Its value.
        value: i32,
    },
    /// A reserved field is nonzero.
    #[error("slot {slot}: {field} is reserved in opcode {opcode:#04x} but holds {value:#x}")]
    Reserved {
        /// Slot.
        slot: usize,
        /// The opcode.
        opcode: u8,
        /// The field.
        field: FieldName,
        /// Its value.
        value: i32,
    },
    /// A register number above 10.
    #[error("slot {slot}: {field} names register {number}, the last is 10")]
    Register {
        /// Slot.
        slot: usize,
        /// The register field.
        field: FieldName,
        /// The number, 11 to 15.
        number: u8,
    },
    /// The program ends in the middle of a two-slot instruction.
    #[error("slot {slot}: the second slot of the 64-bit immediate load is missing")]
    SecondMissing {
        /// The first slot.
        slot: usize,
    },
    /// A reserved field in the second slot of a two-slot instruction is nonzero.
    #[error(
        "slot {slot}: {field} of the second slot of a 64-bit immediate load must be zero but holds {value:#x}"
    )]
    SecondReserved {
        /// The second slot.
        slot: usize,
        /// The field.
        field: FieldName,
        /// Its value.
        value: i32,
    },
}

impl DecodeError {
    /// The slot that cannot be decoded.
    #[must_use]
    pub const fn slot(&self) -> usize {
        match *self {
            Self::PastEnd { slot, .. }
            | Self::Opcode { slot, .. }
            | Self::Selector { slot, .. }
            | Self::Reserved { slot, .. }
            | Self::Register { slot, .. }
            | Self::SecondMissing { slot }
            | Self::SecondReserved { slot, .. } => slot,
        }
    }
}

/// Decodes a whole program.
///
/// # Errors
/// The first slot that cannot be decoded.
pub fn decode(raw: &[RawInsn]) -> Result<Code, DecodeError> {
    let mut code = Code::with_capacity(raw.len());
    while code.len() < raw.len() {
        code.push(decode_at(raw, code.len())?);
    }
    Ok(code)
}

/// Decodes the instruction that starts at `slot`.
///
/// # Errors
/// If the slot is out of bounds or cannot be decoded. The second slot of a 64-bit immediate load is no instruction: its opcode is
/// 0.
pub fn decode_at(raw: &[RawInsn], slot: usize) -> Result<Insn, DecodeError> {
    let first = raw.get(slot).ok_or(DecodeError::PastEnd { slot, len: raw.len() })?;
    let row = select(first, slot)?;
    check_reserved(row, first, slot)?;
    let mut operands = Operands {
        dst: register(row.dst, first.dst, FieldName::Dst, slot)?,
        src: register(row.src, first.src, FieldName::Src, slot)?,
        offset: first.offset,
        imm: first.imm,
        next_imm: 0,
    };
    if let Some(field) = row.next_imm {
        operands.next_imm = second_imm(raw, slot, field)?;
    }
    Ok(row.form.with(&operands))
}

/// The row of a slot's opcode that matches the selecting fields.
fn select(raw: &RawInsn, slot: usize) -> Result<&'static Encoding, DecodeError> {
    let rows = rows_of(raw.opcode);
    if let Some(row) = rows.iter().find(|row| row.selects(raw)) {
        return Ok(row);
    }
    let wrong =
        rows.iter().flat_map(|row| row.fields(raw)).find(|(_, field, _)| matches!(field, Field::Is(_)));
    Err(match wrong {
        Some((field, _, value)) => DecodeError::Selector { slot, opcode: raw.opcode, field, value },
        None => DecodeError::Opcode { slot, opcode: raw.opcode },
    })
}

fn check_reserved(row: &Encoding, raw: &RawInsn, slot: usize) -> Result<(), DecodeError> {
    match row.fields(raw).into_iter().find(|&(_, field, value)| field == Field::Zero && value != 0) {
        Some((field, _, value)) => Err(DecodeError::Reserved { slot, opcode: raw.opcode, field, value }),
        None => Ok(()),
    }
}

/// The register in a field; `r0` if the field is no operand.
fn register(field: Field, number: u8, name: FieldName, slot: usize) -> Result<Reg, DecodeError> {
    match field {
        Field::Any => Reg::new(number).ok_or(DecodeError::Register { slot, field: name, number }),
        Field::Zero | Field::Is(_) => Ok(Reg::R0),
    }
}

/// The second slot's immediate, after its reserved fields are checked.
fn second_imm(raw: &[RawInsn], slot: usize, field: Field) -> Result<i32, DecodeError> {
    let second = raw.get(slot + 1).ok_or(DecodeError::SecondMissing { slot })?;
    let unused_imm = if field == Field::Zero { second.imm } else { 0 };
    let must_be_zero = [
        (FieldName::Opcode, i32::from(second.opcode)),
        (FieldName::Dst, i32::from(second.dst)),
        (FieldName::Src, i32::from(second.src)),
        (FieldName::Offset, i32::from(second.offset)),
        (FieldName::Imm, unused_imm),
    ];
    match must_be_zero.into_iter().find(|&(_, value)| value != 0) {
        Some((field, value)) => Err(DecodeError::SecondReserved { slot: slot + 1, field, value }),
        None => Ok(second.imm),
    }
}

impl Encoding {
    /// The fields other than the opcode: name, expected value, value in the slot.
    fn fields(&self, raw: &RawInsn) -> [(FieldName, Field, i32); 4] {
        [
            (FieldName::Dst, self.dst, i32::from(raw.dst)),
            (FieldName::Src, self.src, i32::from(raw.src)),
            (FieldName::Offset, self.offset, i32::from(raw.offset)),
            (FieldName::Imm, self.imm, raw.imm),
        ]
    }

    /// Whether the selecting fields have this row's values.
    pub(crate) fn selects(&self, raw: &RawInsn) -> bool {
        self.fields(raw).into_iter().all(|(_, field, value)| match field {
            Field::Is(wanted) => value == wanted,
            Field::Zero | Field::Any => true,
        })
    }
}
