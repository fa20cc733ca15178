//! Points of the code.

/// A point of the code: four times an instruction's position, and [`BEFORE`] to [`AFTER`].
pub(super) type Point = u32;

/// Moves before an instruction.
pub(super) const BEFORE: Point = 0;
/// The instruction reads its uses.
pub(super) const EARLY: Point = 1;
/// The instruction writes its definitions.
pub(super) const LATE: Point = 2;
/// Moves after the instruction.
pub(super) const AFTER: Point = 3;

/// A point of an instruction.
#[inline]
pub(super) const fn point(inst: u32, at: Point) -> Point {
    4 * inst + at
}
