//! Reasons why a path was not followed to its end.

use std::fmt;

use crate::solver::Unknown;
use paceline_spec::MapKind;

/// Why a path was not followed further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GiveUp {
    /// A helper that is not modelled.
    Helper(&'static str),
    /// A helper that is modelled, but not with such arguments.
    HelperUse(&'static str, &'static str),
    /// A kernel function.
    Kfunc(&'static str),
    /// A helper's use of a map of this kind.
    Map(MapKind, &'static str),
    /// An instruction that is not modelled.
    Instruction(&'static str),
    /// An address is used as a number.
    Address,
    /// A field of the context that is not modelled.
    Context(&'static str),
    /// A loop has more rounds than are followed.
    Rounds,
    /// The path is longer than is followed.
    Length,
    /// The solver gave up.
    Solver(Unknown),
    /// The time for the exploration was over.
    Time,
    /// There were more open paths than are kept.
    Paths,
    /// As many paths were followed as was allowed.
    Followed,
    /// There were more terms than are kept.
    Terms,
    /// The function is called by a timer.
    Timer,
    /// There is an input, but it needs what inputs cannot give.
    Input(&'static str),
}

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Helper(name) => write!(f, "{name} is not modelled"),
            Self::HelperUse(name, what) => write!(f, "{name} is not modelled {what}"),
            Self::Kfunc(name) => write!(f, "{name} is not modelled"),
            Self::Map(kind, helper) => write!(f, "{helper} is not modelled for maps of kind {kind}"),
            Self::Instruction(name) => write!(f, "{name} is not modelled"),
            Self::Address => f.write_str("an address is used as a number"),
            Self::Context(name) => write!(f, "{name} of the context is not modelled"),
            Self::Rounds => f.write_str("a loop has too many rounds"),
            Self::Length => f.write_str("a path has too many instructions"),
            Self::Solver(unknown) => unknown.fmt(f),
            Self::Time => f.write_str("the time was over"),
            Self::Followed => f.write_str("as many paths were followed as is allowed"),
            Self::Paths => f.write_str("there were too many open paths"),
            Self::Terms => f.write_str("there were too many terms"),
            Self::Timer => f.write_str("a timer calls the function"),
            Self::Input(what) => write!(f, "it needs {what}"),
        }
    }
}

/// Where a path was given up, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Slot of the instruction.
    pub slot: usize,
    /// The reason.
    pub why: GiveUp,
}
