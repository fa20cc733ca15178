//! The abstract domain: values and their lattice operations, states, and which parts of a state matter.

pub(crate) mod access;
pub(crate) mod number;
pub(crate) mod precision;
pub(crate) mod reads;
pub mod state;

pub use access::OffsetRange;
pub use number::{Bounds, Number, Scalar, Tnum};
