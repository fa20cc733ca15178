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

use super::insn::{AluOp, Condition};
use crate::insn::{AtomicOp, Size, SwapOrder, Width};

/// Contents of a slot's field in an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Reserved: must be zero.
    Zero,
    /// An operand: any value (0 to 10 in a register field).
    Any,
    /// A selector: the value distinguishes rows of one opcode.
    Is(i32),
}

/// A conformance group of RFC 9669 section 2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// `base32`
    Base32,
    /// `base64`
    Base64,
    /// `divmul32`
    DivMul32,
    /// `divmul64`
    DivMul64,
    /// `atomic32`
    Atomic32,
    /// `atomic64`
    Atomic64,
    /// `packet`: the legacy packet loads.
    Packet,
    /// Not in the RFC: defined by the Linux kernel or by LLVM.
    Extension,
}

/// The lowest `-mcpu` with which clang 19 emits an instruction (`llvm/lib/Target/BPF/BPFSubtarget.cpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cpu {
    /// `v1`: the instructions of Linux 3.18.
    V1,
    /// `v2`: jumps on less-than, Linux 4.14.
    V2,
    /// `v3`: 32-bit jumps and fetching atomics, Linux 5.1 to 5.12.
    V3,
    /// `v4`: signed division, sign extension, `bswap`, `gotol`, Linux 6.6.
    V4,
}

/// Source of the second operand, named after the opcode bit (`BPF_K`, `BPF_X`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The immediate.
    K,
    /// The register in `src`.
    X,
}

/// The kinds of [`Imm64`](crate::Imm64), without their operands.
#[expect(missing_docs, reason = "the variants are those of Imm64, documented there")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Imm64Kind {
    Value,
    MapFd,
    MapValueFd,
    Variable,
    Code,
    MapIndex,
    MapValueIndex,
}

/// An instruction without its operands: corresponds to exactly one row of the table.
///
/// The variants are those of [`Insn`](crate::Insn), documented there.
#[expect(missing_docs, reason = "the variants are those of Insn, documented there")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Alu(Width, AluOp, Source),
    Neg(Width),
    MovSx(Width, Size),
    AddrSpaceCast,
    Swap(SwapOrder, Size),
    Load(Size),
    LoadSx(Size),
    Store(Size, Source),
    Atomic(Width, AtomicOp),
    LoadAcquire(Size),
    StoreRelease(Size),
    LoadImm64(Imm64Kind),
    LoadPacket(Size, Source),
    Jump,
    JumpLong,
    JumpIf(Width, Condition, Source),
    MayGoto,
    CallHelper,
    CallSubprogram,
    CallKfunc,
    CallReg,
    Exit,
}

/// One row: encoding and text of one form.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// The opcode byte.
    pub opcode: u8,
    /// The `dst` field.
    pub dst: Field,
    /// The `src` field.
    pub src: Field,
    /// The `offset` field.
    pub offset: Field,
    /// The `imm` field.
    pub imm: Field,
    /// The `imm` field of the second slot, whose other fields are always zero; `None` without a second slot.
    pub next_imm: Option<Field>,
    /// The text, with the placeholders listed in the module's documentation.
    pub text: &'static str,
    /// Meaning.
    pub form: Form,
    /// Conformance group.
    pub group: Group,
    /// The lowest `-mcpu` of clang that emits it.
    pub cpu: Cpu,
}

impl Encoding {
    /// Size in slots: 1 or 2.
    #[must_use]
    pub const fn slot_count(&self) -> usize {
        if self.next_imm.is_some() { 2 } else { 1 }
    }
}

mod rows;
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
