//! Assignments: a register for a live range up to the point where it is split, and a spill slot from there on.

use super::moves::Loc;
use super::point::Point;
use crate::codegen::lir::Reg;

/// The assignment of a live range.
#[derive(Clone, Copy)]
pub(super) struct Assignment {
    /// Its register, as long as it has one.
    pub(super) reg: Option<Reg>,
    /// The point at which it is split: it is in its spill slot from there on.
    pub(super) split: Point,
    /// Its spill slot, if it is split.
    pub(super) slot: Option<u32>,
}

impl Assignment {
    /// That of a live range before the scan reaches it.
    pub(super) const NONE: Self = Self { reg: None, split: Point::MAX, slot: None };

    pub(super) const fn is_split(&self) -> bool {
        self.split != Point::MAX
    }

    /// The location of the virtual register at a point at which it is live.
    #[inline]
    pub(super) fn at(&self, point: Point) -> Option<Loc> {
        match self.reg {
            Some(reg) if point < self.split => Some(Loc::Reg(reg)),
            _ => self.slot.map(Loc::Slot),
        }
    }
}

/// The result of the scan: assignments, slots and reloads.
#[derive(Default)]
pub(super) struct Assigned {
    /// By virtual register.
    pub(super) assignments: Vec<Assignment>,
    pub(super) spill_slots: u32,
    /// By operand: the register that its value is loaded to before the instruction, if that is not its assignment. Empty if none is.
    pub(super) loaded: Vec<Option<Reg>>,
}
