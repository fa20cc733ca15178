//! One classic instruction: the 8 bytes of `struct sock_filter`, and their meaning.

use std::fmt;

/// An instruction, `struct sock_filter` of `linux/filter.h` (libpcap's `struct bpf_insn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SockFilter {
    /// Opcode.
    pub code: u16,
    /// Instructions to skip if a conditional jump is taken.
    pub jt: u8,
    /// Instructions to skip if it is not taken.
    pub jf: u8,
    /// Constant, packet offset, index of a scratch memory word, or distance of `ja`.
    pub k: u32,
}

/// Number of scratch memory words (`BPF_MEMWORDS`).
pub const MEMORY_WORDS: usize = 16;

/// Maximum length of a program in instructions (`BPF_MAXINSNS`).
pub const MAX_INSNS: usize = 4096;

/// Maximum length of a program for user space in instructions: as many as a verifier processes.
pub const MAX_USER_INSNS: usize = 1_000_000;

/// The two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// The accumulator.
    A,
    /// The index register.
    X,
}

/// Size of a packet load; more than one byte are in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// One byte.
    B,
    /// Two bytes.
    H,
    /// Four bytes.
    W,
}

impl Size {
    /// Size in bytes: 1, 2 or 4.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B => 1,
            Self::H => 2,
            Self::W => 4,
        }
    }
}

/// Source of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadFrom {
    /// The constant.
    Immediate,
    /// The length of the packet.
    Length,
    /// A word of scratch memory.
    Memory,
    /// The packet at an offset, or an ancillary word (see [`Ancillary`](super::Ancillary)).
    Absolute(Size),
    /// The packet at an offset from the index register.
    Indirect(Size),
    /// Four times the low four bits of a byte of the packet: the length of an IPv4 header.
    HeaderLength,
}

/// Second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The constant.
    K,
    /// The index register.
    X,
}

/// Arithmetic on 32 bits; the accumulator is the first operand and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AluOp {
    /// Wrapping addition.
    Add,
    /// Wrapping subtraction.
    Sub,
    /// Wrapping multiplication.
    Mul,
    /// Division; by an index register of zero the program returns 0.
    Div,
    /// Remainder; by an index register of zero the program returns 0.
    Mod,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the kernel uses the low five bits of the amount.
    Lsh,
    /// Right shift, likewise.
    Rsh,
}

/// Comparison of the accumulator with the second operand, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `==`
    Eq,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&`: some bit in common.
    Set,
}

/// Operation of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `ld`, `ldx`
    Load(Register, LoadFrom),
    /// `st`, `stx`
    Store(Register),
    /// `add` to `xor`
    Alu(AluOp, Source),
    /// `neg`
    Negate,
    /// `ja`
    Jump,
    /// `jeq`, `jgt`, `jge`, `jset`
    JumpIf(Condition, Source),
    /// `ret #k`
    Return,
    /// `ret a`
    ReturnA,
    /// `tax`
    Tax,
    /// `txa`
    Txa,
}

impl SockFilter {
    /// An instruction other than a jump.
    #[must_use]
    pub const fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }
}

/// The format of `tcpdump -dd`.
impl fmt::Display for SockFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {:#x}, {}, {}, {:#010x} }}", self.code, self.jt, self.jf, self.k)
    }
}
