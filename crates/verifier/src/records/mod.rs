//! What the exploration records beside the states.

mod facts;
mod leaks;
pub(crate) mod loans;
mod roots;

use crate::domain::precision::Precision;
use crate::domain::reads::StackReads;

use facts::Facts;
use loans::Loans;

pub(crate) use roots::{Root, Roots};

/// All records of the exploration of one program.
pub(crate) struct Records {
    /// The numbers that matter.
    pub(crate) precision: Precision,
    /// The stack bytes that matter.
    pub(crate) reads: StackReads,
    /// Facts for the compilers.
    pub(crate) facts: Facts,
    /// Memory arguments of global functions.
    pub(crate) loans: Loans,
    /// The entry points found so far.
    pub(crate) roots: Roots,
    /// The last id in use, of a pointer or a group of numbers.
    pub(crate) last_id: u32,
}

impl Records {
    pub(crate) fn new(slots: usize, functions: usize) -> Self {
        Self {
            precision: Precision::new(),
            reads: StackReads::new(functions),
            facts: Facts::new(slots, functions),
            loans: Loans::default(),
            roots: Roots::new(),
            last_id: 0,
        }
    }

    /// Drops what holds for the paths from one entry point only.
    pub(crate) fn restart(&mut self) {
        self.precision = Precision::new();
        self.reads.restart();
    }

    /// A new id for a pointer or a group of numbers.
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// Bytes of the records that grow with the kept states.
    pub(crate) fn bytes(&self) -> usize {
        self.precision.bytes() + self.reads.bytes()
    }
}
