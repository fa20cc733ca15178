//! Operations on numbers, conditions and atomic operations, with their names.

use paceline_isa::{AluOp, AtomicOp, Condition, eval};

use crate::ir::types::Type;

/// Arithmetic with two operands of one type: as [`eval::alu`] defines it, or what passes make of several instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Wrapping product.
    Mul,
    /// Unsigned quotient; 0 if the divisor is 0.
    Udiv,
    /// Signed quotient; 0 if the divisor is 0, MIN for MIN / -1.
    Sdiv,
    /// Unsigned remainder; the dividend if the divisor is 0.
    Urem,
    /// Signed remainder; the dividend if the divisor is 0, 0 for MIN % -1.
    Srem,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the count is taken modulo the type's bits.
    Shl,
    /// Logical right shift; likewise.
    Lshr,
    /// Arithmetic right shift; likewise.
    Ashr,
    /// Left rotation; likewise.
    Rotl,
    /// High half of the unsigned product.
    Umulhi,
}

impl BinaryOp {
    /// All of them, with their names in text.
    pub const NAMES: [(Self, &str); 15] = [
        (Self::Add, "add"),
        (Self::Sub, "sub"),
        (Self::Mul, "mul"),
        (Self::Udiv, "udiv"),
        (Self::Sdiv, "sdiv"),
        (Self::Urem, "urem"),
        (Self::Srem, "srem"),
        (Self::Or, "or"),
        (Self::And, "and"),
        (Self::Xor, "xor"),
        (Self::Shl, "shl"),
        (Self::Lshr, "lshr"),
        (Self::Ashr, "ashr"),
        (Self::Rotl, "rotl"),
        (Self::Umulhi, "umulhi"),
    ];

    /// The operation of an instruction; `None` for a move.
    #[must_use]
    pub const fn of(op: AluOp) -> Option<Self> {
        Some(match op {
            AluOp::Add => Self::Add,
            AluOp::Sub => Self::Sub,
            AluOp::Mul => Self::Mul,
            AluOp::Div => Self::Udiv,
            AluOp::SDiv => Self::Sdiv,
            AluOp::Mod => Self::Urem,
            AluOp::SMod => Self::Srem,
            AluOp::Or => Self::Or,
            AluOp::And => Self::And,
            AluOp::Xor => Self::Xor,
            AluOp::Lsh => Self::Shl,
            AluOp::Rsh => Self::Lshr,
            AluOp::Arsh => Self::Ashr,
            AluOp::Mov => return None,
        })
    }

    /// The operation of instructions that computes it; `None` if there is none.
    #[must_use]
    #[inline]
    pub const fn alu(self) -> Option<AluOp> {
        Some(match self {
            Self::Add => AluOp::Add,
            Self::Sub => AluOp::Sub,
            Self::Mul => AluOp::Mul,
            Self::Udiv => AluOp::Div,
            Self::Sdiv => AluOp::SDiv,
            Self::Urem => AluOp::Mod,
            Self::Srem => AluOp::SMod,
            Self::Or => AluOp::Or,
            Self::And => AluOp::And,
            Self::Xor => AluOp::Xor,
            Self::Shl => AluOp::Lsh,
            Self::Lshr => AluOp::Rsh,
            Self::Ashr => AluOp::Arsh,
            Self::Rotl | Self::Umulhi => return None,
        })
    }

    /// Its result.
    #[must_use]
    #[inline]
    pub fn eval(self, ty: Type, a: u64, b: u64) -> u64 {
        match (self.alu(), self, ty) {
            (Some(alu), ..) => eval::alu(ty.width(), alu, a, b),
            // Counts are taken modulo the bits.
            (None, Self::Rotl, Type::I32) => (a as u32).rotate_left(b as u32 & 31).into(),
            (None, Self::Rotl, Type::I64) => a.rotate_left(b as u32 & 63),
            (None, ..) => {
                let product = u128::from(ty.cut(a)) * u128::from(ty.cut(b));
                (product >> ty.bits()) as u64
            }
        }
    }

    /// Whether the operands can be exchanged.
    #[must_use]
    pub const fn is_commutative(self) -> bool {
        matches!(self, Self::Add | Self::Mul | Self::Or | Self::And | Self::Xor | Self::Umulhi)
    }
}

/// Names of conditions in text.
pub const CONDITIONS: [(Condition, &str); 11] = [
    (Condition::Eq, "eq"),
    (Condition::Ne, "ne"),
    (Condition::Gt, "ugt"),
    (Condition::Ge, "uge"),
    (Condition::Lt, "ult"),
    (Condition::Le, "ule"),
    (Condition::Set, "set"),
    (Condition::SGt, "sgt"),
    (Condition::SGe, "sge"),
    (Condition::SLt, "slt"),
    (Condition::SLe, "sle"),
];

/// Names of atomic operations in text; those with `fetch` have a result.
pub const ATOMICS: [(AtomicOp, &str); 10] = [
    (AtomicOp::Add { fetch: false }, "add"),
    (AtomicOp::Or { fetch: false }, "or"),
    (AtomicOp::And { fetch: false }, "and"),
    (AtomicOp::Xor { fetch: false }, "xor"),
    (AtomicOp::Add { fetch: true }, "fetch_add"),
    (AtomicOp::Or { fetch: true }, "fetch_or"),
    (AtomicOp::And { fetch: true }, "fetch_and"),
    (AtomicOp::Xor { fetch: true }, "fetch_xor"),
    (AtomicOp::Xchg, "xchg"),
    (AtomicOp::CmpXchg, "cmpxchg"),
];
