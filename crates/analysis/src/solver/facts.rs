//! What the form of a term tells of its number: known bits and a range.

use crate::solver::bits::ones;
use crate::solver::node::{Node, Term};

/// Facts about a number of some width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Bits that are known to be 0, within the width.
    pub(crate) zeros: u64,
    /// Bits that are known to be 1.
    pub(crate) ones: u64,
    /// The least number.
    pub(crate) min: u64,
    /// The greatest number.
    pub(crate) max: u64,
}

impl Facts {
    const fn constant(width: u32, value: u64) -> Self {
        Self { zeros: ones(width) & !value, ones: value, min: value, max: value }
    }

    const fn unknown(width: u32) -> Self {
        Self { zeros: 0, ones: 0, min: 0, max: ones(width) }
    }

    const fn bits(width: u32, zeros: u64, ones: u64) -> Self {
        Self { zeros, ones, min: 0, max: crate::solver::bits::ones(width) }
    }

    const fn range(width: u32, min: u64, max: u64) -> Self {
        Self { min, max, ..Self::unknown(width) }
    }

    /// Bits tell of the range, and the range of the high bits.
    fn closed(mut self, width: u32) -> Self {
        let mask = ones(width);
        self.max = self.max.min(mask & !self.zeros);
        self.min = self.min.max(self.ones);
        // Bits above the highest one in which the ends of the range differ are those of both.
        let differ = self.min ^ self.max;
        let common = mask & !ones(64 - differ.leading_zeros());
        self.ones |= self.min & common;
        self.zeros |= !self.min & common;
        self
    }

    /// The facts about a node, from those of its operands and their widths.
    pub(crate) fn of(width: u32, node: Node, known: impl Fn(Term) -> (Self, u32)) -> Self {
        open(width, node, known).closed(width)
    }

    /// Bits that are not known.
    const fn unknowns(self, width: u32) -> u64 {
        ones(width) & !(self.zeros | self.ones)
    }
}

fn open(width: u32, node: Node, known: impl Fn(Term) -> (Facts, u32)) -> Facts {
    let of = |term: Term| known(term).0;
    match node {
        Node::Const(value) => Facts::constant(width, value),
        Node::Var(_) | Node::Shl(..) | Node::Ashr(..) => Facts::unknown(width),
        Node::Not(a) => {
            let a = of(a);
            let mask = ones(width);
            Facts { zeros: a.ones, ones: a.zeros, min: mask & !a.max, max: mask & !a.min }
        }
        Node::Add(a, b) => sum(width, of(a), of(b)),
        Node::Sub(a, b) => difference(width, of(a), of(b)),
        Node::Mul(a, b) => product(width, of(a), of(b)),
        Node::Udiv(a, b) => quotient(width, of(a), of(b)),
        Node::Urem(a, b) => remainder(width, of(a), of(b)),
        Node::And(a, b) => {
            let (a, b) = (of(a), of(b));
            Facts { max: a.max.min(b.max), ..Facts::bits(width, a.zeros | b.zeros, a.ones & b.ones) }
        }
        Node::Or(a, b) => {
            let (a, b) = (of(a), of(b));
            Facts { min: a.min.max(b.min), ..Facts::bits(width, a.zeros & b.zeros, a.ones | b.ones) }
        }
        Node::Xor(a, b) => {
            let (a, b) = (of(a), of(b));
            Facts::bits(width, a.zeros & b.zeros | a.ones & b.ones, a.zeros & b.ones | a.ones & b.zeros)
        }
        Node::Lshr(a, _) => Facts::range(width, 0, of(a).max),
        Node::Concat(high, low) => joined(of(high), known(low)),
        Node::Extract(a, low) => extracted(width, of(a), u32::from(low)),
        Node::Eq(a, b) => equality(of(a), of(b)),
        Node::Ult(a, b) => order(of(a), of(b)),
        Node::Ite(_, a, b) => either(of(a), of(b)),
    }
}

fn quotient(width: u32, a: Facts, b: Facts) -> Facts {
    match b.min {
        0 => Facts::unknown(width),
        least => Facts::range(width, a.min / b.max, a.max / least),
    }
}

fn remainder(width: u32, a: Facts, b: Facts) -> Facts {
    let most = if b.min > 0 { a.max.min(b.max - 1) } else { a.max };
    Facts::range(width, 0, most)
}

fn joined(high: Facts, (low, shift): (Facts, u32)) -> Facts {
    let join = |high: u64, low: u64| high << shift | low;
    Facts {
        zeros: join(high.zeros, low.zeros),
        ones: join(high.ones, low.ones),
        min: join(high.min, low.min),
        max: join(high.max, low.max),
    }
}

fn equality(a: Facts, b: Facts) -> Facts {
    let apart = a.max < b.min || b.max < a.min;
    match apart || a.ones & b.zeros != 0 || a.zeros & b.ones != 0 {
        true => Facts::constant(1, 0),
        false => Facts::unknown(1),
    }
}

fn order(a: Facts, b: Facts) -> Facts {
    if a.max < b.min {
        Facts::constant(1, 1)
    } else if a.min >= b.max {
        Facts::constant(1, 0)
    } else {
        Facts::unknown(1)
    }
}

fn either(a: Facts, b: Facts) -> Facts {
    Facts { zeros: a.zeros & b.zeros, ones: a.ones & b.ones, min: a.min.min(b.min), max: a.max.max(b.max) }
}

/// Known bits of a sum: those that no carry from unknown bits reaches.
fn sum(width: u32, a: Facts, b: Facts) -> Facts {
    let mask = ones(width);
    let known = a.ones.wrapping_add(b.ones);
    let unknown = a.unknowns(width) | b.unknowns(width);
    let highest = known.wrapping_add(a.unknowns(width)).wrapping_add(b.unknowns(width));
    let uncertain = highest ^ known | unknown;
    let bits = Facts::bits(width, !known & !uncertain & mask, known & !uncertain & mask);
    match (a.min.checked_add(b.min), a.max.checked_add(b.max)) {
        (Some(min), Some(max)) if max <= mask => Facts { min, max, ..bits },
        _ => bits,
    }
}

fn difference(width: u32, a: Facts, b: Facts) -> Facts {
    let range = match (a.min.checked_sub(b.max), a.max.checked_sub(b.min)) {
        (Some(min), Some(max)) => Facts::range(width, min, max),
        _ => Facts::unknown(width),
    };
    let low = (a.zeros & b.zeros).trailing_ones();
    Facts { zeros: ones(low.min(width)), ..range }
}

fn product(width: u32, a: Facts, b: Facts) -> Facts {
    let low = (a.zeros.trailing_ones() + b.zeros.trailing_ones()).min(width);
    let range = match (a.min.checked_mul(b.min), a.max.checked_mul(b.max)) {
        (Some(min), Some(max)) if max <= ones(width) => Facts::range(width, min, max),
        _ => Facts::unknown(width),
    };
    Facts { zeros: ones(low), ..range }
}

fn extracted(width: u32, a: Facts, low: u32) -> Facts {
    let mask = ones(width);
    let bits = Facts::bits(width, a.zeros >> low & mask, a.ones >> low & mask);
    // Nothing is cut off above.
    if a.max >> low <= mask { Facts { min: a.min >> low, max: a.max >> low, ..bits } } else { bits }
}
