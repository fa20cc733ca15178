//! The disassembler: formats slots as lines.

use std::fmt::{Display, Formatter};

use crate::decode::{DecodeError, decode_at};
use crate::insn::{Insn, RawInsn};

/// A line of a disassembled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The slot the instruction starts at.
    pub slot: usize,
    /// The instruction, or the decoding error.
    pub insn: Result<Insn, DecodeError>,
}

/// `       3: r0 = 2`, as llvm-objdump without byte columns; a decoding error is in angle brackets.
impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.insn {
            Ok(insn) => write!(f, "{:8}: {insn}", self.slot),
            Err(error) => write!(f, "{:8}: <{error}>", self.slot),
        }
    }
}

/// Disassembles a program, one line per instruction. A slot that cannot be decoded has a line of its own and is skipped.
///
/// If all slots decode, the concatenated lines [assemble](crate::assemble) to the same program.
#[must_use]
pub fn disassemble(raw: &[RawInsn]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut slot = 0;
    while slot < raw.len() {
        let insn = decode_at(raw, slot);
        lines.push(Line { slot, insn });
        slot += insn.map_or(1, |insn| insn.slots());
    }
    lines
}
