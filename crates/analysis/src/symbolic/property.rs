//! Properties of runs: formulas over the packet as it came in and as it goes out, the verdict and the maps.

use paceline_frame::Verdict;

/// A packet: before the run, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// As it came in.
    In,
    /// As the program left it, whatever becomes of it.
    Out,
}

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// It does not hold.
    Not(Box<Self>),
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// The program has this verdict.
    Verdict(Verdict),
    /// A relation of two numbers.
    Compare(Relation, Number, Number),
    /// All bytes from an offset on are those of another packet, or part: as many, none where the packet does not reach it.
    Same(Rest, Rest),
    /// The run adds, removes or changes an element of the map at an index.
    Changes(usize),
}

/// A relation of numbers without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// They are equal.
    Equal,
    /// The first is less.
    Less,
    /// The first is less, or they are equal.
    LessOrEqual,
}

impl Relation {
    /// Whether two numbers are in this relation.
    #[must_use]
    pub const fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
        }
    }
}

/// A number of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// A constant.
    Constant(u64),
    /// A packet's length in bytes.
    Length(Moment),
    /// Some bits of a packet, which lie in at most 8 bytes; the most significant one of each byte is the first. Of no certain value
    /// beyond the packet's end.
    Bits {
        /// The packet.
        of: Moment,
        /// The first bit.
        first: usize,
        /// How many.
        count: usize,
    },
    /// The return value, of 32 bits.
    Returned,
    /// A sum, which wraps.
    Sum(Box<Self>, Box<Self>),
    /// A difference, which wraps.
    Difference(Box<Self>, Box<Self>),
    /// A product, which wraps.
    Product(Box<Self>, Box<Self>),
    /// The bits that both have.
    Both(Box<Self>, Box<Self>),
    /// The number of the first formula that holds; 0 if none does.
    Choice(Vec<(Formula, Self)>),
}

/// The bytes of a packet from an offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rest {
    /// The packet.
    pub of: Moment,
    /// The offset.
    pub from: usize,
}

impl Formula {
    /// Whether it is about maps.
    pub(crate) fn is_about_maps(&self) -> bool {
        self.any(&|formula| matches!(formula, Self::Changes(_)))
    }

    /// Whether it compares the rest of packets.
    pub(crate) fn is_about_rests(&self) -> bool {
        self.any(&|formula| matches!(formula, Self::Same(..)))
    }

    /// The parts that all hold, or fail, where it holds, or fails.
    pub(crate) fn parts<'f>(&'f self, holds: bool, parts: &mut Vec<(&'f Self, bool)>) {
        match (self, holds) {
            (Self::Not(inner), _) => inner.parts(!holds, parts),
            (Self::All(all), true) | (Self::Any(all), false) => {
                all.iter().for_each(|part| part.parts(holds, parts));
            }
            _ => parts.push((self, holds)),
        }
    }

    /// Whether it is about the packet that comes in alone, but for the rest of it.
    pub(crate) fn is_about_input(&self) -> bool {
        !self.any(&|formula| match formula {
            Self::Verdict(_) | Self::Same(..) | Self::Changes(_) => true,
            Self::Compare(_, left, right) => left.is_about_run() || right.is_about_run(),
            Self::Not(_) | Self::All(_) | Self::Any(_) => false,
        })
    }

    /// Whether a part of it is such a one.
    fn any(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        let inner = match self {
            Self::Not(inner) => inner.any(is),
            Self::All(all) | Self::Any(all) => all.iter().any(|formula| formula.any(is)),
            Self::Compare(_, left, right) => left.any(is) || right.any(is),
            Self::Verdict(_) | Self::Same(..) | Self::Changes(_) => false,
        };
        inner || is(self)
    }
}

impl Number {
    /// Whether it is about anything but the packet that comes in, the conditions of its choices aside.
    fn is_about_run(&self) -> bool {
        match self {
            Self::Length(of) | Self::Bits { of, .. } => *of == Moment::Out,
            Self::Returned => true,
            Self::Constant(_) => false,
            Self::Sum(left, right)
            | Self::Difference(left, right)
            | Self::Product(left, right)
            | Self::Both(left, right) => left.is_about_run() || right.is_about_run(),
            Self::Choice(choices) => choices.iter().any(|(_, number)| number.is_about_run()),
        }
    }

    fn any(&self, is: &dyn Fn(&Formula) -> bool) -> bool {
        match self {
            Self::Constant(_) | Self::Length(_) | Self::Bits { .. } | Self::Returned => false,
            Self::Sum(left, right)
            | Self::Difference(left, right)
            | Self::Product(left, right)
            | Self::Both(left, right) => left.any(is) || right.any(is),
            Self::Choice(choices) => {
                choices.iter().any(|(formula, number)| formula.any(is) || number.any(is))
            }
        }
    }
}
