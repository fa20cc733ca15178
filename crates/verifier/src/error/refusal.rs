//! The refusal of a program.

use std::fmt;

use paceline_isa::Reg;

use super::cause::{Cause, RegName};
use super::hint::Hint;
use crate::domain::state::Value;
use crate::stats::Stats;

/// A branch on the path that leads to a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether it was taken.
    pub taken: bool,
}

/// A refusal: instruction, cause, and abstract state.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Slot of the guilty instruction.
    pub slot: usize,
    /// Cause.
    pub cause: Cause,
    /// A fix, for frequent mistakes.
    pub hint: Option<Hint>,
    /// Abstract values of the registers that the instruction reads.
    pub registers: Vec<(Reg, Value)>,
    /// The call that invalidated the guilty pointer, if any.
    pub invalidated_by: Option<usize>,
    /// The last 64 branches on the path, in order.
    pub path: Vec<Branch>,
    /// Slots of the active calls, outermost first.
    pub calls: Vec<usize>,
    /// Cost of the walk so far; zero if the control flow check fails.
    pub stats: Stats,
}

impl Refusal {
    pub(crate) fn at(slot: usize, cause: Cause) -> Box<Self> {
        Box::new(Self {
            slot,
            cause,
            hint: None,
            registers: Vec::new(),
            invalidated_by: None,
            path: Vec::new(),
            stats: Stats::default(),
            calls: Vec::new(),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}: {}", self.slot, self.cause)?;
        for (reg, value) in &self.registers {
            write!(f, "; {} is {value}", RegName(*reg))?;
        }
        if let Some(slot) = self.invalidated_by {
            write!(f, "; packet pointers are stale since the call at {slot}")?;
        }
        match self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}
