//! Terms and what they are made of.

/// A term of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub(crate) u32);

/// A variable of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub(crate) u32);

impl Var {
    /// Its number, from 0 in the order in which variables are made.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

/// What a term is made of. Operands have the term's width where it is not said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number.
    Const(u64),
    /// A variable.
    Var(Var),
    /// Bitwise complement.
    Not(Term),
    /// Sum, modulo the width.
    Add(Term, Term),
    /// Difference, modulo the width.
    Sub(Term, Term),
    /// Product, modulo the width.
    Mul(Term, Term),
    /// Unsigned quotient; all ones if the divisor is zero.
    Udiv(Term, Term),
    /// Unsigned remainder; the dividend if the divisor is zero.
    Urem(Term, Term),
    /// Bitwise and.
    And(Term, Term),
    /// Bitwise or.
    Or(Term, Term),
    /// Bitwise exclusive or.
    Xor(Term, Term),
    /// Left shift; zero if the count is the width or more.
    Shl(Term, Term),
    /// Right shift; zero if the count is the width or more.
    Lshr(Term, Term),
    /// Arithmetic right shift; all sign bits if the count is the width or more.
    Ashr(Term, Term),
    /// The bits of the first above those of the second.
    Concat(Term, Term),
    /// As many bits as the term has, from this one of the operand on.
    Extract(Term, u8),
    /// Whether two terms of one width are equal; one bit.
    Eq(Term, Term),
    /// Whether the first is less than the second, without sign; one bit.
    Ult(Term, Term),
    /// The second if the first, of one bit, is 1; else the third.
    Ite(Term, Term, Term),
}

impl Node {
    /// Its operands.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Term> + use<> {
        let [a, b, c] = match *self {
            Self::Const(_) | Self::Var(_) => [None; 3],
            Self::Not(a) | Self::Extract(a, _) => [Some(a), None, None],
            Self::Add(a, b)
            | Self::Sub(a, b)
            | Self::Mul(a, b)
            | Self::Udiv(a, b)
            | Self::Urem(a, b)
            | Self::And(a, b)
            | Self::Or(a, b)
            | Self::Xor(a, b)
            | Self::Shl(a, b)
            | Self::Lshr(a, b)
            | Self::Ashr(a, b)
            | Self::Concat(a, b)
            | Self::Eq(a, b)
            | Self::Ult(a, b) => [Some(a), Some(b), None],
            Self::Ite(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        [a, b, c].into_iter().flatten()
    }
}
