//! The abstract domain: values and their lattice operations, states, and which parts of a state matter.

pub(crate) mod access;
pub(crate) mod coverage;
pub(crate) mod inheritance;
pub(crate) mod number;
pub(crate) mod precision;
pub(crate) mod reads;
pub mod state;
pub(crate) mod widening;

pub use number::{Bounds, Number, Scalar, Tnum};
