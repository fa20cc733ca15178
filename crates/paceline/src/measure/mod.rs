//! Times of programs: rounds over packets, and their statistics. A crate of its own, because what it times runs in loops that are to
//! be optimized in every build.

mod busy;
mod pass;
mod rounds;
mod statistics;
mod waits;

pub use busy::{Busy, uneven};
pub use pass::{Contender, Manner, MeasureError, Packet, Room, Runner};
pub use rounds::{Times, rounds};
pub use statistics::{Comparison, Ratio, Summary};
pub use waits::Waits;
