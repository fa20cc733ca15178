//! The table of encodings: every instruction Paceline knows, one row each.
//!
//! A row has the shape of the rows of RFC 9669's appendix: the opcode, what the other fields of the slot
//! must hold, and what it means. The decoder reads a row from left to right, the encoder from right to left,
//! the disassembler fills in the text, and the assembler matches it.
//!
//! # The text column
//! What stands outside braces is literal; a placeholder names the field it shows.
//!
//! | placeholder | shows |
//! |---|---|
//! | `{rd}` `{rs}` | the register in `dst`, `src`, as `r1` |
//! | `{wd}` `{ws}` | the same as `w1` |
//! | `{rwd}` `{wrs}` ... | written with the first letter, read with either: clang's choice depends on `-mcpu` |
//! | `{imm}` | the immediate, in decimal |
//! | `{off}` | the offset in bytes, as `+ 12` or `- 4` |
//! | `{jump}` `{far}` | a jump's slots in the offset, in the immediate: `+3`, or a label |
//! | `{sub}` | a subprogram's slots in the immediate: `pc+3`, or a label |
//! | `{helper}` | a helper's number, or its name |
//! | `{module}` | the offset as an index |
//! | `{to}` `{from}` | the upper and the lower half of the immediate |
//! | `{plus}` | the immediate as ` + 12`; nothing if zero |
//! | `{value}` | both immediates as one 64-bit number |
//! | `{map}` | a map's index, or its name |
//! | `{at}` | the second immediate as `+ 12` |
//! | `{next}` | the second immediate |

use crate::insn::{AtomicOp, Size, SwapOrder, Width};
use crate::{AluOp, Condition};

/// What a field of a slot holds in some encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Reserved: must be zero.
    Zero,
    /// An operand: any value (of a register field, 0 to 10).
    Any,
    /// Part of the operation: this value tells rows of one opcode apart.
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
    /// `v3`: 32-bit jumps and atomics that fetch, Linux 5.1 to 5.12.
    V3,
    /// `v4`: signed division, sign extension, `bswap`, `gotol`, Linux 6.6.
    V4,
}

/// Where the second operand comes from, by the names of the opcode bit (`BPF_K`, `BPF_X`).
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

/// An instruction without its operands: exactly one row of the table.
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

/// One row: how one form of instruction is encoded and written.
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
    /// The `imm` field of the second slot; `None` if there is no second slot, whose other fields are
    /// always zero.
    pub next_imm: Option<Field>,
    /// The text, with placeholders as the module's head lists them.
    pub text: &'static str,
    /// What it means.
    pub form: Form,
    /// Conformance group.
    pub group: Group,
    /// The lowest `-mcpu` of clang that emits it.
    pub cpu: Cpu,
}

impl Encoding {
    /// Slots the instruction takes: 1 or 2.
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

/// The row of one form; `None` for the forms that can be named but do not exist, such as a sign-extending
/// load of 64 bits.
#[must_use]
pub fn row_of(form: Form) -> Option<&'static Encoding> {
    TABLE.iter().find(|row| row.form == form)
}

/// Start and end of every opcode's rows in [`TABLE`].
static INDEX: [(usize, usize); 256] = index();

/// Built by the compiler, which also refuses a table where the rows of one opcode do not adjoin.
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
