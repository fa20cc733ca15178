//! Terms are made here, simplified.
//!
//! The forms that are kept: constants on the right; extensions, shifts by constants and masks as concatenations of parts, so that a
//! byte swap is the bytes in another order; comparisons with sign as comparisons without, of numbers whose highest bit is inverted.
//!
//! Extensions, shifts by constants and masks are concatenations of parts, so that a byte swap is the bytes in another order;
//! comparisons with sign are those without sign of biased numbers. Each node is simplified once, and no more than some hundred
//! deep, since terms share operands and may be chains of a hundred thousand. Z3 refutes what was refuted
//! (`crates/analysis/tests/second_solver.rs`).

mod arithmetic;
mod bitwise;
mod compare;
mod slices;
