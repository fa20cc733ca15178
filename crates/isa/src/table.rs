//! The table of encodings: one row for every known instruction.
//!
//! Rows have the columns of RFC 9669's appendix: the opcode, the other fields of the slot, and the meaning. The decoder maps fields
//! to meanings, the encoder meanings to fields; the disassembler fills in the text, and the assembler matches it.
//!
//! # The text column
//! Text outside of braces is literal; a placeholder stands for a field.
//!
//! | placeholder | field |
//! |---|---|
//! | `{rd}` `{rs}` | the register in `dst`, `src`, as `r1` |
//! | `{wd}` `{ws}` | the same as `w1` |
//! | `{rwd}` `{wrs}` ... | printed with the first letter, parsed with either: clang's choice depends on `-mcpu` |
//! | `{imm}` | the immediate, in decimal |
//! | `{off}` | the offset in bytes, as `+ 12` or `- 4` |
//! | `{jump}` `{far}` | a jump's distance in slots, in the offset or in the immediate: `+3`, or a label |
//! | `{sub}` | a subprogram's distance in slots, in the immediate: `pc+3`, or a label |
//! | `{helper}` | a helper's number, or its name |
//! | `{module}` | the offset as an index |
//! | `{to}` `{from}` | the upper and the lower half of the immediate |
//! | `{plus}` | the immediate as ` + 12`; empty if zero |
//! | `{value}` | both immediates as one 64-bit number |
//! | `{map}` | a map's index, or its name |
//! | `{at}` | the second immediate as `+ 12` |
//! | `{next}` | the second immediate |

mod encoding;
mod rows;

pub use encoding::{Cpu, Encoding, Field, Form, Group, Imm64Kind, Source};
pub use rows::TABLE;

/// The rows of one opcode; none if the opcode is unknown.
#[must_use]
pub fn rows_of(opcode: u8) -> &'static [Encoding] {
    let (start, end) = INDEX[usize::from(opcode)];
    &TABLE[start..end]
}

/// The row of a form; `None` for forms that can be represented but do not exist, such as a sign-extending load of 64 bits.
#[must_use]
pub fn row_of(form: Form) -> Option<&'static Encoding> {
    TABLE.iter().find(|row| row.form == form)
}

/// Start and end of every opcode's rows in [`TABLE`].
static INDEX: [(usize, usize); 256] = index();

/// Evaluated at compile time, which fails if the rows of an opcode are not contiguous.
const fn index() -> [(usize, usize); 256] {
    let mut ranges = [(0, 0); 256];
    let mut row = 0;
    while row < TABLE.len() {
        let (start, end) = ranges[TABLE[row].opcode as usize];
        ranges[TABLE[row].opcode as usize] = if end == 0 {
            (row, row + 1)
        } else {
            assert!(end == row, "rows of one opcode must adjoin");
            (start, end + 1)
        };
        row += 1;
    }
    ranges
}
