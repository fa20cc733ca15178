//! The map: identity, specification and storage; the side of programs, and that of user space.

mod base;
mod program;
mod user;

pub use base::Map;
pub use program::{ProgramAccess, ProgramSide};
pub use user::{FillError, KeyCursor, Keys};
