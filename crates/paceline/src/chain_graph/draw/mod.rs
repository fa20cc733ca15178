//! Drawings of graphs.

mod dot;
mod drawing;
mod svg;

pub use dot::dot;
pub use drawing::{Drawing, EdgePackets};
pub use svg::svg;
