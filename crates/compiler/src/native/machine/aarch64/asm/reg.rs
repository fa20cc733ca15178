use paceline_isa::Condition;

/// A general-purpose register. Instructions use the low 32 or all 64 bits of it; a write of 32 bits clears the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Arm's")]
pub enum Gpr {
    X0,
    X1,
    X2,
    X3,
    X4,
    X5,
    X6,
    X7,
    X8,
    X9,
    X10,
    X11,
    X12,
    X13,
    X14,
    X15,
    X16,
    X17,
    /// The platform's register, which code must not use.
    X18,
    X19,
    X20,
    X21,
    X22,
    X23,
    X24,
    X25,
    X26,
    X27,
    X28,
    /// The frame pointer.
    X29,
    /// The link register.
    X30,
    /// The stack pointer, in the operands that say so.
    Sp,
    /// Zero, in all other operands.
    Zr,
}

impl Gpr {
    /// The number in encodings: the stack pointer and zero have the same.
    #[inline]
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Sp | Self::Zr => 31,
            other => other as u32,
        }
    }
}

/// A condition on the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cond {
    /// Equal; zero.
    Eq = 0,
    /// Not equal; not zero.
    Ne = 1,
    /// Higher or the same, unsigned; carry.
    Hs = 2,
    /// Lower, unsigned; no carry.
    Lo = 3,
    /// Minus.
    Mi = 4,
    /// Plus or zero.
    Pl = 5,
    /// Overflow.
    Vs = 6,
    /// No overflow.
    Vc = 7,
    /// Higher, unsigned.
    Hi = 8,
    /// Lower or the same, unsigned.
    Ls = 9,
    /// Greater or equal, signed.
    Ge = 10,
    /// Less, signed.
    Lt = 11,
    /// Greater, signed.
    Gt = 12,
    /// Less or equal, signed.
    Le = 13,
}

impl Cond {
    /// The condition after a comparison; for [`Condition::Set`] after one of the bits in common.
    #[must_use]
    pub const fn of(condition: Condition) -> Self {
        match condition {
            Condition::Eq => Self::Eq,
            Condition::Ne | Condition::Set => Self::Ne,
            Condition::Gt => Self::Hi,
            Condition::Ge => Self::Hs,
            Condition::Lt => Self::Lo,
            Condition::Le => Self::Ls,
            Condition::SGt => Self::Gt,
            Condition::SGe => Self::Ge,
            Condition::SLt => Self::Lt,
            Condition::SLe => Self::Le,
        }
    }

    /// All conditions, by their encodings.
    pub const ALL: [Self; 14] = [
        Self::Eq,
        Self::Ne,
        Self::Hs,
        Self::Lo,
        Self::Mi,
        Self::Pl,
        Self::Vs,
        Self::Vc,
        Self::Hi,
        Self::Ls,
        Self::Ge,
        Self::Lt,
        Self::Gt,
        Self::Le,
    ];

    /// The condition that holds exactly when this one does not.
    #[must_use]
    pub const fn invert(self) -> Self {
        Self::ALL[self as usize ^ 1]
    }
}
