use paceline_isa::{Condition, Size};

use crate::native::machine::operand::Width;

/// A general-purpose register. Its number is that of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the architecture's")]
pub enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Gpr {
    /// All registers in the order of their numbers.
    pub const ALL: [Gpr; 16] = [
        Gpr::Rax,
        Gpr::Rcx,
        Gpr::Rdx,
        Gpr::Rbx,
        Gpr::Rsp,
        Gpr::Rbp,
        Gpr::Rsi,
        Gpr::Rdi,
        Gpr::R8,
        Gpr::R9,
        Gpr::R10,
        Gpr::R11,
        Gpr::R12,
        Gpr::R13,
        Gpr::R14,
        Gpr::R15,
    ];

    /// The three low bits of the number, for ModRM, SIB or the opcode.
    pub(super) const fn low(self) -> u8 {
        self as u8 & 7
    }

    /// The fourth bit of the number, for REX or VEX.
    pub(super) const fn high(self) -> u8 {
        self as u8 >> 3
    }

    /// Whether the low byte needs a REX prefix: without one these numbers encode ah, ch, dh and bh.
    pub(super) const fn byte_needs_rex(self) -> bool {
        self as u8 & 0b1100 == 0b0100
    }
}

/// A condition on the flags, with its number in `jcc`, `setcc` and `cmovcc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cond {
    /// Overflow.
    O,
    /// No overflow.
    No,
    /// Below, unsigned; carry.
    B,
    /// Above or equal, unsigned; no carry.
    Ae,
    /// Equal; zero.
    E,
    /// Not equal; not zero.
    Ne,
    /// Below or equal, unsigned.
    Be,
    /// Above, unsigned.
    A,
    /// Negative.
    S,
    /// Not negative.
    Ns,
    /// Even parity of the low byte.
    P,
    /// Odd parity of the low byte.
    Np,
    /// Less, signed.
    L,
    /// Greater or equal, signed.
    Ge,
    /// Less or equal, signed.
    Le,
    /// Greater, signed.
    G,
}

impl Cond {
    /// The condition after `cmp`, or after `test` for [`Condition::Set`].
    #[must_use]
    pub const fn of(condition: Condition) -> Cond {
        match condition {
            Condition::Eq => Cond::E,
            Condition::Ne | Condition::Set => Cond::Ne,
            Condition::Gt => Cond::A,
            Condition::Ge => Cond::Ae,
            Condition::Lt => Cond::B,
            Condition::Le => Cond::Be,
            Condition::SGt => Cond::G,
            Condition::SGe => Cond::Ge,
            Condition::SLt => Cond::L,
            Condition::SLe => Cond::Le,
        }
    }

    /// All conditions in the order of their numbers.
    pub const ALL: [Cond; 16] = [
        Cond::O,
        Cond::No,
        Cond::B,
        Cond::Ae,
        Cond::E,
        Cond::Ne,
        Cond::Be,
        Cond::A,
        Cond::S,
        Cond::Ns,
        Cond::P,
        Cond::Np,
        Cond::L,
        Cond::Ge,
        Cond::Le,
        Cond::G,
    ];

    /// The opposite condition.
    pub const fn invert(self) -> Cond {
        // Opposite conditions are numbered 2n and 2n + 1.
        Cond::ALL[self as usize ^ 1]
    }
}

/// Operand size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OpSize {
    /// 8 bits. The other bits of a register are preserved.
    B8,
    /// 16 bits. The other bits of a register are preserved.
    W16,
    /// 32 bits. The upper half of a register is zeroed.
    D32,
    /// 64 bits. 32-bit immediates are sign-extended.
    Q64,
}

impl OpSize {
    /// The size of an access.
    #[must_use]
    pub const fn of(size: Size) -> OpSize {
        match size {
            Size::B => OpSize::B8,
            Size::H => OpSize::W16,
            Size::W => OpSize::D32,
            Size::Dw => OpSize::Q64,
        }
    }

    /// All sizes, increasing.
    pub const ALL: [OpSize; 4] = [OpSize::B8, OpSize::W16, OpSize::D32, OpSize::Q64];
}

impl From<Width> for OpSize {
    #[inline]
    fn from(width: Width) -> OpSize {
        match width {
            Width::D32 => OpSize::D32,
            Width::Q64 => OpSize::Q64,
        }
    }
}
