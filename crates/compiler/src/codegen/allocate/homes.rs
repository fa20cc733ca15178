//! Where virtual registers are, and the registers of operands.

use super::moves::Loc;
use super::point::Point;
use crate::codegen::lir::Reg;

/// Where a virtual register is.
#[derive(Clone, Copy)]
pub(super) struct Home {
    /// Its register, as long as it has one.
    pub(super) reg: Option<Reg>,
    /// The point from which it is in its slot.
    pub(super) cut: Point,
    /// Its slot, if it is cut.
    pub(super) slot: Option<u32>,
}

impl Home {
    /// The home of a virtual register before the scan reaches it.
    pub(super) const NONE: Self = Self { reg: None, cut: Point::MAX, slot: None };

    pub(super) const fn is_cut(&self) -> bool {
        self.cut != Point::MAX
    }

    /// The location of the virtual register at a point at which it is live.
    #[inline]
    pub(super) fn at(&self, point: Point) -> Option<Loc> {
        match self.reg {
            Some(reg) if point < self.cut => Some(Loc::Reg(reg)),
            _ => self.slot.map(Loc::Slot),
        }
    }
}

/// The result of the scan: homes, slots and reloads.
#[derive(Default)]
pub(super) struct Assigned {
    /// By virtual register.
    pub(super) homes: Vec<Home>,
    pub(super) slot_count: u32,
    /// By operand: the register that its value is loaded to before the instruction, if that is not its home. Empty if none is.
    pub(super) loaded: Vec<Option<Reg>>,
}
