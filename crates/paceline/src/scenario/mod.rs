//! Scenarios: all that programs observe besides packets and maps, given once for whatever runs them.

mod origin;
mod session;
mod world;

pub use origin::Origin;
pub use session::{Session, SessionError};
pub use world::Scenario;
