//! One classic instruction: the 8 bytes of `struct sock_filter`, and what they mean.

use std::fmt;

use super::table::{Row, row_of};

/// An instruction as the kernel takes it, `struct sock_filter` of `linux/filter.h` (libpcap's `struct bpf_insn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SockFilter {
    /// Opcode.
    pub code: u16,
    /// Instructions that a conditional jump skips if it is taken.
    pub jt: u8,
    /// Instructions that it skips if it is not.
    pub jf: u8,
    /// Constant, offset in the packet, word of scratch memory, or distance of `ja`.
    pub k: u32,
}

/// Words of scratch memory (`BPF_MEMWORDS`).
pub const MEMORY_WORDS: usize = 16;

/// Most instructions of a program (`BPF_MAXINSNS`).
pub const MAX_INSNS: usize = 4096;

/// Most instructions of a program that no kernel has to take: as many as a verifier walks.
pub const MAX_USER_INSNS: usize = 1_000_000;

/// The two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// The accumulator.
    A,
    /// The index register.
    X,
}

/// Bytes of a packet load; more than one are in network order.
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
    /// 1, 2 or 4.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B => 1,
            Self::H => 2,
            Self::W => 4,
        }
    }
}

/// Where a load takes its value from.
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

/// What an opcode does.
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
    /// An instruction that is no jump.
    #[must_use]
    pub const fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }

    /// Its row in the table of instructions; `None` for opcodes that do not exist.
    #[must_use]
    pub fn row(self) -> Option<&'static Row> {
        row_of(self.code)
    }
}

/// The instruction as `-dd` prints it.
impl fmt::Display for SockFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {:#x}, {}, {}, {:#010x} }}", self.code, self.jt, self.jf, self.k)
    }
}
