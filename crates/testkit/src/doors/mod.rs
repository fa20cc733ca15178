//! The doors of Paceline: the same scenario through each command that runs packets, and through other languages. `run --verdicts` tells
//! what becomes of each packet; all others must tell the same.

mod ask;
mod languages;
mod problem;
mod scene;
mod test_file;
mod told;

pub use ask::{Asked, Doors};
pub use problem::Problem;
pub use scene::{Scene, Subject};
