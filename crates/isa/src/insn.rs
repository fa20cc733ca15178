//! The two forms of an instruction: the 8 bytes on the wire, and what they mean.

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

    /// The register of a number, 0 to 10.
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

/// One 8-byte slot as it lies in memory, with its fields taken apart but not judged (RFC 9669 section 3).
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
    /// Bytes a slot takes.
    pub const BYTES: usize = 8;

    /// A slot from its bytes in little-endian order, as `clang -target bpfel` writes them.
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

    /// A slot from its bytes in big-endian order (`bpfeb`), where the register fields swap places as well.
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

    /// The bytes of the slot in little-endian order.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        let o = self.offset.to_le_bytes();
        let i = self.imm.to_le_bytes();
        [self.opcode, self.dst & 0xf | self.src << 4, o[0], o[1], i[0], i[1], i[2], i[3]]
    }

    /// The bytes of the slot in big-endian order.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        let o = self.offset.to_be_bytes();
        let i = self.imm.to_be_bytes();
        [self.opcode, self.dst << 4 | self.src & 0xf, o[0], o[1], i[0], i[1], i[2], i[3]]
    }
}

/// How many bits of the registers an operation works on; 32-bit results are zero-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// The low 32 bits (`w0` in text).
    W32,
    /// All 64 bits (`r0` in text).
    W64,
}

/// Bytes a memory access moves.
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
    /// The size of so many bytes; `None` if they are not 1, 2, 4 or 8.
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
    /// Unsigned division; by zero gives 0.
    Div,
    /// Signed division; by zero gives 0, and the overflow of MIN / -1 gives MIN.
    SDiv,
    /// Unsigned remainder; by zero leaves `dst`.
    Mod,
    /// Signed remainder; by zero leaves `dst`, and MIN % -1 gives 0.
    SMod,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the amount is masked to the width.
    Lsh,
    /// Logical right shift; the amount is masked to the width.
    Rsh,
    /// Arithmetic right shift; the amount is masked to the width.
    Arsh,
    /// Move.
    Mov,
}

/// What a byte-swap instruction does to the low 16, 32 or 64 bits (RFC 9669 section 4.2).
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
    /// `&`: some bit in common.
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

/// Atomic read-modify-write (RFC 9669 section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Addition, with the old value in `src` when `fetch`.
    Add {
        /// Old value goes to `src`.
        fetch: bool,
    },
    /// Bitwise or.
    Or {
        /// Old value goes to `src`.
        fetch: bool,
    },
    /// Bitwise and.
    And {
        /// Old value goes to `src`.
        fetch: bool,
    },
    /// Bitwise exclusive or.
    Xor {
        /// Old value goes to `src`.
        fetch: bool,
    },
    /// Exchange: old value to `src`.
    Xchg,
    /// Compare `r0` with memory and store `src` if equal; the old value goes to `r0`.
    CmpXchg,
}

/// What a two-slot 64-bit immediate load means (RFC 9669 section 5.4, the `src` field).
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
        /// Slots relative to the second slot of this instruction: offsets count from the slot after the first.
        offset: i32,
    },
    /// `src` 5: a map by index in the program's own list.
    MapIndex(i32),
    /// `src` 6: address of a map's only value plus an offset, map by index.
    MapValueIndex {
        /// Index in the program's list of maps.
        index: i32,
        /// Offset in bytes into the value.
        offset: u32,
    },
}

/// What a call instruction calls (RFC 9669 section 4.3.1).
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

/// An instruction: what one slot, or two for [`Insn::LoadImm64`], mean.
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
    /// `dst = addr_space_cast(src, to, from)`: between arena address spaces (the kernel's, not in the RFC).
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
    /// `dst = be16 dst` and the like; the result is zero-extended to 64 bits.
    Swap {
        /// What is done.
        order: SwapOrder,
        /// How many bytes take part: H, W or Dw.
        size: Size,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = *(u16 *)(base + offset)`; `signed` extends the sign (B, H and W only).
    Load {
        /// Bytes read.
        size: Size,
        /// Sign-extend instead of zero-extend.
        signed: bool,
        /// Result.
        dst: Reg,
        /// Address.
        base: Reg,
        /// Added to the address, in bytes.
        offset: i16,
    },
    /// `*(u32 *)(base + offset) = src`
    Store {
        /// Bytes written.
        size: Size,
        /// Address.
        base: Reg,
        /// Added to the address, in bytes.
        offset: i16,
        /// What is stored.
        src: Operand,
    },
    /// `lock *(u64 *)(base + offset) += src` and the like.
    Atomic {
        /// 32 or 64 bits.
        width: Width,
        /// Operation.
        op: AtomicOp,
        /// Address.
        base: Reg,
        /// Added to the address, in bytes.
        offset: i16,
        /// Operand, and receiver of the old value where it is fetched.
        src: Reg,
    },
    /// `dst = load_acquire((u32 *)(base + offset))` (the kernel's, not in the RFC).
    LoadAcquire {
        /// Bytes read.
        size: Size,
        /// Result.
        dst: Reg,
        /// Address.
        base: Reg,
        /// Added to the address, in bytes.
        offset: i16,
    },
    /// `store_release((u32 *)(base + offset), src)` (the kernel's, not in the RFC).
    StoreRelease {
        /// Bytes written.
        size: Size,
        /// Address.
        base: Reg,
        /// Added to the address, in bytes.
        offset: i16,
        /// What is stored.
        src: Reg,
    },
    /// `dst = imm ll`: the only instruction of two slots.
    LoadImm64 {
        /// Result.
        dst: Reg,
        /// What is loaded.
        value: Imm64,
    },
    /// `r0 = *(u16 *)skb[imm]` or `skb[src + imm]`: the legacy packet loads, big-endian, sizes B, H and W.
    LoadPacket {
        /// Bytes read.
        size: Size,
        /// Index register of the indirect form.
        index: Option<Reg>,
        /// Offset in bytes into the packet; negative ones have meanings of classic BPF.
        offset: i32,
    },
    /// `goto +3`: offset in slots from the next instruction.
    Jump {
        /// Slots.
        offset: i16,
    },
    /// `gotol +70000`: the same with a 32-bit offset.
    JumpLong {
        /// Slots.
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
        /// Slots from the next instruction.
        offset: i16,
    },
    /// `may_goto +3`: leaves a loop when its budget is spent (the kernel's, not in the RFC).
    MayGoto {
        /// Slots from the next instruction.
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
    /// Slots the instruction takes: 2 for [`Insn::LoadImm64`], otherwise 1.
    #[must_use]
    pub const fn slots(&self) -> usize {
        match self {
            Self::LoadImm64 { .. } => 2,
            _ => 1,
        }
    }
}
