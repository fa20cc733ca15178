//! Running a capture through a program.

mod error;
mod options;
mod outputs;
mod parallel;
mod runner;
mod serial;
mod tally;

pub use error::ReplayError;
pub use options::ReplayOptions;
pub use outputs::Outputs;
pub use parallel::replay_on;
pub use runner::Runner;
pub use serial::replay;
pub use tally::Tally;
