//! Objects, from the file to programs that run: read, verified, their maps made, bound to them.

pub(crate) mod collection;
#[cfg(feature = "analysis")]
pub(crate) mod counters;
mod difference;
pub(crate) mod error;
mod global;
pub(crate) mod object;
mod options;
mod pinned;
mod programs;
mod tables;
mod verify;

pub use collection::{Collection, MissingMap};
pub use difference::Difference;
pub use error::{EntryError, ProgramError, SetupError};
pub use global::GlobalError;
pub use object::{FilterTextError, Object, OpenError};
pub use options::LoadOptions;
pub use pinned::PinnedMaps;
pub use tables::UnfilledEntry;
pub use verify::{VerifiedProgram, VerifierError};
