//! The two representations of an instruction: the encoded 8 bytes, and the decoded meaning.

/// A BPF register, `r0` to `r10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reg {
    /// Return value of calls and programs.
    R0,
    /// First argument; the context on entry.
    R1,
    /// Second argument.
    R2,
    /// Third argument.
    R3,
    /// Fourth argument.
    R4,
    /// Fifth argument.
    R5,
    /// Callee-saved.
    R6,
    /// Callee-saved.
    R7,
    /// Callee-saved.
    R8,
    /// Callee-saved.
    R9,
    /// Frame pointer, read-only.
    R10,
}

impl Reg {
    /// All registers, in order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::R0,
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4,
        Self::R5,
        Self::R6,
        Self::R7,
        Self::R8,
        Self::R9,
        Self::R10,
    ];

    /// The register with a number, 0 to 10.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The register's number, 0 to 10.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// One 8-byte slot, split into fields without validation (RFC 9669 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawInsn {
    /// Operation: class in the low three bits.
    pub opcode: u8,
    /// Destination register field, 0 to 15.
    pub dst: u8,
    /// Source register field, 0 to 15.
    pub src: u8,
    /// Signed offset: bytes for memory, slots for jumps.
    pub offset: i16,
    /// Signed immediate.
    pub imm: i32,
}

impl RawInsn {
    /// Size of a slot in bytes.
    pub const BYTES: usize = 8;

    /// Decodes a slot from little-endian bytes, as `clang -target bpfel` writes them.
    #[must_use]
    pub const fn from_le_bytes(b: [u8; 8]) -> Self {
        Self {
            opcode: b[0],
            dst: b[1] & 0xf,
            src: b[1] >> 4,
            offset: i16::from_le_bytes([b[2], b[3]]),
            imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// Decodes a slot from big-endian bytes (`bpfeb`), in which the register fields are swapped as well.
    #[must_use]
    pub const fn from_be_bytes(b: [u8; 8]) -> Self {
        Self {
            opcode: b[0],
            dst: b[1] >> 4,
            src: b[1] & 0xf,
            offset: i16::from_be_bytes([b[2], b[3]]),
            imm: i32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// Encodes the slot as little-endian bytes.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        let o = self.offset.to_le_bytes();
        let i = self.imm.to_le_bytes();
        [self.opcode, self.dst & 0xf | self.src << 4, o[0], o[1], i[0], i[1], i[2], i[3]]
    }

    /// Encodes the slot as big-endian bytes.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        let o = self.offset.to_be_bytes();
        let i = self.imm.to_be_bytes();
        [self.opcode, self.dst << 4 | self.src & 0xf, o[0], o[1], i[0], i[1], i[2], i[3]]
    }
}

/// Operand width of an operation; 32-bit results are zero-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// The low 32 bits (`w0` in text).
    W32,
    /// All 64 bits (`r0` in text).
    W64,
}

/// Size of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// One byte, `u8`.
    B,
    /// Two bytes, `u16`.
    H,
    /// Four bytes, `u32`.
    W,
    /// Eight bytes, `u64`.
    Dw,
}

impl Size {
    /// The size with a number of bytes; `None` unless it is 1, 2, 4 or 8.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            1 => Some(Self::B),
            2 => Some(Self::H),
            4 => Some(Self::W),
            8 => Some(Self::Dw),
            _ => None,
        }
    }

    /// The size in bytes: 1, 2, 4 or 8.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::B => 1,
            Self::H => 2,
            Self::W => 4,
            Self::Dw => 8,
        }
    }
}

/// Second operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// An immediate, sign-extended to the operation's width.
    Imm(i32),
}

/// Arithmetic with two operands; `dst = dst op src` (RFC 9669 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AluOp {
    /// Wrapping addition.
    Add,
    /// Wrapping subtraction.
    Sub,
    /// Wrapping multiplication.
    Mul,
    /// Unsigned division; 0 if the divisor is zero.
    Div,
    /// Signed division; 0 if the divisor is zero, MIN for MIN / -1.
    SDiv,
    /// Unsigned remainder; `dst` if the divisor is zero.
    Mod,
    /// Signed remainder; `dst` if the divisor is zero, 0 for MIN % -1.
    SMod,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the count is masked to the width.
    Lsh,
    /// Logical right shift; the count is masked to the width.
    Rsh,
    /// Arithmetic right shift; the count is masked to the width.
    Arsh,
    /// Move.
    Mov,
}

impl AluOp {
    /// Every operation, in the order above.
    pub const ALL: [Self; 14] = [
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::SDiv,
        Self::Mod,
        Self::SMod,
        Self::Or,
        Self::And,
        Self::Xor,
        Self::Lsh,
        Self::Rsh,
        Self::Arsh,
        Self::Mov,
    ];
}

/// Operation of a byte-swap instruction on the low 16, 32 or 64 bits (RFC 9669 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwapOrder {
    /// Host to or from little-endian: truncates on a little-endian host.
    ToLe,
    /// Host to or from big-endian: swaps on a little-endian host.
    ToBe,
    /// Swaps on every host (v4 `bswap`).
    Always,
}

/// Comparison of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// Unsigned `>`
    Gt,
    /// Unsigned `>=`
    Ge,
    /// Unsigned `<`
    Lt,
    /// Unsigned `<=`
    Le,
    /// `&`: nonzero bitwise and.
    Set,
    /// Signed `>`
    SGt,
    /// Signed `>=`
    SGe,
    /// Signed `<`
    SLt,
    /// Signed `<=`
    SLe,
}

impl Condition {
    /// Every condition, in the order above.
    pub const ALL: [Self; 11] = [
        Self::Eq,
        Self::Ne,
        Self::Gt,
        Self::Ge,
        Self::Lt,
        Self::Le,
        Self::Set,
        Self::SGt,
        Self::SGe,
        Self::SLt,
        Self::SLe,
    ];

    /// The condition that holds where this one does not; `None` for [`Set`](Self::Set), which has no opposite.
    #[must_use]
    pub const fn opposite(self) -> Option<Self> {
        Some(match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::SGt => Self::SLe,
            Self::SGe => Self::SLt,
            Self::SLt => Self::SGe,
            Self::SLe => Self::SGt,
            Self::Set => return None,
        })
    }

    /// The condition for exchanged operands.
    #[must_use]
    pub const fn exchanged(self) -> Self {
        match self {
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::SGt => Self::SLt,
            Self::SGe => Self::SLe,
            Self::SLt => Self::SGt,
            Self::SLe => Self::SGe,
            Self::Eq | Self::Ne | Self::Set => self,
        }
    }
}

/// Atomic read-modify-write (RFC 9669 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Addition.
    Add {
        /// Whether `src` receives the old value.
        fetch: bool,
    },
    /// Bitwise or.
    Or {
        /// Whether `src` receives the old value.
        fetch: bool,
    },
    /// Bitwise and.
    And {
        /// Whether `src` receives the old value.
        fetch: bool,
    },
    /// Bitwise exclusive or.
    Xor {
        /// Whether `src` receives the old value.
        fetch: bool,
    },
    /// Exchange; `src` receives the old value.
    Xchg,
    /// Compares `r0` with memory and stores `src` if equal; `r0` receives the old value.
    CmpXchg,
}

impl AtomicOp {
    /// Every operation, with and without the old value, in the order above.
    pub const ALL: [Self; 10] = [
        Self::Add { fetch: false },
        Self::Add { fetch: true },
        Self::Or { fetch: false },
        Self::Or { fetch: true },
        Self::And { fetch: false },
        Self::And { fetch: true },
        Self::Xor { fetch: false },
        Self::Xor { fetch: true },
        Self::Xchg,
        Self::CmpXchg,
    ];
}

/// Meaning of a two-slot 64-bit immediate load (RFC 9669 section 5.4, the `src` field).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Imm64 {
    /// `src` 0: a plain 64-bit constant.
    Value(u64),
    /// `src` 1: a map by file descriptor.
    MapFd(i32),
    /// `src` 2: address of a map's only value plus an offset, map by file descriptor.
    MapValueFd {
        /// The map's file descriptor.
        fd: i32,
        /// Offset in bytes into the value.
        offset: u32,
    },
    /// `src` 3: a kernel variable by BTF id, with the descriptor of the module's BTF.
    Variable {
        /// BTF type id of the variable.
        btf_id: i32,
        /// BTF file descriptor, 0 for the kernel's own.
        btf_fd: i32,
    },
    /// `src` 4: address of a subprogram.
    Code {
        /// Target in slots relative to the second slot of this instruction: offsets are relative to the slot after the first.
        offset: i32,
    },
    /// `src` 5: a map by index in the program's list of maps.
    MapIndex(i32),
    /// `src` 6: address of a map's only value plus an offset, map by index.
    MapValueIndex {
        /// Index in the program's list of maps.
        index: i32,
        /// Offset in bytes into the value.
        offset: u32,
    },
}

/// Target of a call instruction (RFC 9669 section 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// `src` 0: a helper by its number.
    Helper(i32),
    /// `src` 1: a subprogram, in slots relative to the next instruction.
    Subprogram(i32),
    /// `src` 2: a kernel function by BTF id; `module` is the index of a BTF descriptor, 0 for the kernel's own.
    Kfunc {
        /// BTF type id of the function.
        btf_id: i32,
        /// Index in the descriptor array (the `offset` field).
        module: i16,
    },
}

/// An instruction of one slot, or of two for [`Insn::LoadImm64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Insn {
    /// `dst = dst op src`
    Alu {
        /// Width of the operation.
        width: Width,
        /// Operation.
        op: AluOp,
        /// First operand and result.
        dst: Reg,
        /// Second operand.
        src: Operand,
    },
    /// `dst = -dst`
    Neg {
        /// Width of the operation.
        width: Width,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = (s8)src`: move with sign extension. `from` is B or H, or W when `width` is 64 bits.
    MovSx {
        /// Width of the result.
        width: Width,
        /// Size of the value that is extended.
        from: Size,
        /// Result.
        dst: Reg,
        /// Source.
        src: Reg,
    },
    /// `dst = addr_space_cast(src, to, from)`: a cast between arena address spaces (Linux, not in the RFC).
    AddrSpaceCast {
        /// Result.
        dst: Reg,
        /// Source.
        src: Reg,
        /// Destination address space.
        to: u16,
        /// Source address space.
        from: u16,
    },
    /// `dst = be16 dst` and others; the result is zero-extended to 64 bits.
    Swap {
        /// Operation.
        order: SwapOrder,
        /// Number of bytes: H, W or Dw.
        size: Size,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = *(u16 *)(base + offset)`; sign-extended if `signed` (B, H and W only).
    Load {
        /// Size of the access.
        size: Size,
        /// Whether the value is sign-extended instead of zero-extended.
        signed: bool,
        /// Result.
        dst: Reg,
        /// Base address.
        base: Reg,
        /// Offset in bytes.
        offset: i16,
    },
    /// `*(u32 *)(base + offset) = src`
    Store {
        /// Size of the access.
        size: Size,
        /// Base address.
        base: Reg,
        /// Offset in bytes.
        offset: i16,
        /// Stored value.
        src: Operand,
    },
    /// `lock *(u64 *)(base + offset) += src` and others.
    Atomic {
        /// 32 or 64 bits.
        width: Width,
        /// Operation.
        op: AtomicOp,
        /// Base address.
        base: Reg,
        /// Offset in bytes.
        offset: i16,
        /// Operand, and destination of a fetched old value.
        src: Reg,
    },
    /// `dst = load_acquire((u32 *)(base + offset))` (Linux, not in the RFC).
    LoadAcquire {
        /// Size of the access.
        size: Size,
        /// Result.
        dst: Reg,
        /// Base address.
        base: Reg,
        /// Offset in bytes.
        offset: i16,
    },
    /// `store_release((u32 *)(base + offset), src)` (Linux, not in the RFC).
    StoreRelease {
        /// Size of the access.
        size: Size,
        /// Base address.
        base: Reg,
        /// Offset in bytes.
        offset: i16,
        /// Stored value.
        src: Reg,
    },
    /// `dst = imm ll`: the only instruction of two slots.
    LoadImm64 {
        /// Result.
        dst: Reg,
        /// Loaded value.
        value: Imm64,
    },
    /// `r0 = *(u16 *)skb[imm]` or `skb[src + imm]`: the legacy packet loads, big-endian, sizes B, H and W.
    LoadPacket {
        /// Size of the access.
        size: Size,
        /// Index register of the indirect form.
        index: Option<Reg>,
        /// Packet offset in bytes; negative ones have special meanings as in classic BPF.
        offset: i32,
    },
    /// `goto +3`: relative to the next instruction.
    Jump {
        /// Offset in slots.
        offset: i16,
    },
    /// `gotol +70000`: a jump with a 32-bit offset.
    JumpLong {
        /// Offset in slots.
        offset: i32,
    },
    /// `if dst == src goto +3`
    JumpIf {
        /// Width of the comparison.
        width: Width,
        /// Comparison.
        condition: Condition,
        /// First operand.
        dst: Reg,
        /// Second operand.
        src: Operand,
        /// Offset in slots, relative to the next instruction.
        offset: i16,
    },
    /// `may_goto +3`: leaves a loop when its budget is exhausted (Linux, not in the RFC).
    MayGoto {
        /// Offset in slots, relative to the next instruction.
        offset: i16,
    },
    /// `call`
    Call(Callee),
    /// `callx dst`: call through a register (LLVM's; neither the RFC nor the kernel has it).
    CallReg(Reg),
    /// `exit`
    Exit,
}

impl Insn {
    /// Size in slots: 2 for [`Insn::LoadImm64`], otherwise 1.
    #[must_use]
    #[inline]
    pub const fn slots(&self) -> usize {
        match self {
            Self::LoadImm64 { .. } => 2,
            _ => 1,
        }
    }
}
