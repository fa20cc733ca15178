//! Printing of instructions: the table's text with the operands filled in.

use std::fmt::{Display, Formatter, Result};

use super::template::{NumberPlace, Piece, RegisterField, RegisterPlace, pieces};
use crate::form::{Operands, halves};
use crate::insn::{Imm64, Insn, Reg};
use crate::table::row_of;

/// clang's BPF assembly, with decimal immediates as printed by `llvm-objdump --no-print-imm-hex`. Loads and stores use `r`
/// registers, as clang does below `-mcpu=v3`.
///
/// Instructions without clang syntax have one that the assembler parses: `call pc+3`, `call kfunc[12, 0]`,
/// `r1 = map[0] ll`, `r1 = map_fd[3] ll`, `r1 = map_value[0] + 4 ll`, `r1 = subprog[+3] ll`, `r1 = btf_var[12, 0] ll`.
/// An instruction without an encoding is printed in Rust's debug format.
impl Display for Insn {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (form, operands) = self.split();
        let Some(row) = row_of(form) else { return write!(f, "{self:?}") };
        pieces(row.text).try_for_each(|piece| match piece {
            Piece::Literal(text) => f.write_str(text),
            Piece::Register(place) => write_register(f, place, &operands),
            Piece::Number(place) => write_number(f, place, &operands),
        })
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "r{}", self.number())
    }
}

fn write_register(f: &mut Formatter<'_>, place: RegisterPlace, operands: &Operands) -> Result {
    let written = place.prefixes.get(..1).unwrap_or_default();
    let reg = match place.field {
        RegisterField::Dst => operands.dst,
        RegisterField::Src => operands.src,
    };
    write!(f, "{written}{}", reg.number())
}

fn write_number(f: &mut Formatter<'_>, place: NumberPlace, o: &Operands) -> Result {
    let (to, from) = halves(o.imm);
    match place {
        NumberPlace::Imm
        | NumberPlace::Helper
        | NumberPlace::Kfunc
        | NumberPlace::Map
        | NumberPlace::MapId => {
            write!(f, "{}", o.imm)
        }
        NumberPlace::Off => write_spaced(f, o.offset.into()),
        NumberPlace::Jump => write!(f, "{:+}", o.offset),
        NumberPlace::Far => write!(f, "{:+}", o.imm),
        NumberPlace::Sub => write!(f, "pc{:+}", o.imm),
        NumberPlace::Module => write!(f, "{}", o.offset),
        NumberPlace::To => write!(f, "{to}"),
        NumberPlace::From => write!(f, "{from}"),
        NumberPlace::Plus if o.imm == 0 => Ok(()),
        NumberPlace::Plus => {
            f.write_str(" ")?;
            write_spaced(f, o.imm.into())
        }
        NumberPlace::Value => write!(f, "{}", Imm64::value(o.imm, o.next_imm).cast_signed()),
        NumberPlace::At => write_spaced(f, o.next_imm.cast_unsigned().into()),
        NumberPlace::Next => write!(f, "{}", o.next_imm),
    }
}

/// `+ 12` or `- 4`
fn write_spaced(f: &mut Formatter<'_>, value: i64) -> Result {
    write!(f, "{} {}", if value < 0 { '-' } else { '+' }, value.unsigned_abs())
}
