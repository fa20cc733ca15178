//! Terms are made here, simplified.
//!
//! The forms that are kept: constants on the right; extensions, shifts by constants and masks as concatenations of parts, so that a
//! byte swap is the bytes in another order; comparisons with sign as comparisons without, of numbers whose highest bit is inverted.

mod arithmetic;
mod bitwise;
mod compare;
mod slices;
