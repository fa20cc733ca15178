//! Cost of verification and compilation, on expensive programs.
//!
//! The verifier's time must be explained by its counters: the program's slots and types, simulated instructions, steps of
//! comparisons. Any other time is due to a phase without a bound.

mod bound;
mod families;
mod measure;

pub use bound::{Excess, excess, growth};
pub use families::{Family, Item};
pub use measure::{Cost, measure};
