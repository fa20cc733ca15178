//! The columns of the table.

use crate::insn::{AluOp, AtomicOp, Condition, Size, SwapOrder, Width};

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
