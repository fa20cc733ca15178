//! What a verification and the compilation behind it cost, on programs that are made to cost much.
//!
//! All that the verifier does is to be explained by what it counts: the program's slots and types, instructions
//! simulated, steps of comparisons. Time for which these do not account comes from a phase that nothing bounds.

mod bound;
mod families;
mod measure;

pub use bound::{Excess, excess, growth};
pub use families::{Family, Item};
pub use measure::{Cost, measure};
