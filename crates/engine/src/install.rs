//! Programs in program arrays.

use std::num::NonZeroU64;
use std::sync::Arc;

use paceline_epoch::{Domain, Stalled};
use paceline_maps::{Map, Owner};
use paceline_runtime::interpreter::image::Image;
use paceline_spec::Errno;

/// An image in a program array. A worker that read its token before the removal may still run it.
struct Installed(Option<Arc<Image>>);

impl Drop for Installed {
    fn drop(&mut self) {
        if let Some(image) = self.0.take() {
            Domain::global().retire(image);
        }
    }
}

/// A program cannot be stored in a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The map holds no programs.
    #[error("the map is no program array")]
    NoProgramArray,
    /// The index is out of range.
    #[error("index {index} is not below the map's {entries} entries")]
    Index {
        /// Index.
        index: u32,
        /// Entries of the map.
        entries: usize,
    },
    /// The other programs that use the map are of another type.
    #[error("the map is used by programs of another type")]
    Kind,
    /// User space may not change the map: `EPERM`.
    #[error("the map is frozen, or user space may only read it: {0}")]
    Refused(Errno),
    /// Workers that stall keep too much of what was replaced before.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

/// Stores an image in a program array, which keeps it.
pub(crate) fn install(image: &Arc<Image>, map: &Map, index: u32) -> Result<(), InstallError> {
    let array = map.for_programs().prog_array().ok_or(InstallError::NoProgramArray)?;
    if !array.admits(image.kind()) {
        return Err(InstallError::Kind);
    }
    Domain::global().admit()?;
    let owner: Owner = Box::new(Installed(Some(image.clone())));
    let token = NonZeroU64::new(Arc::as_ptr(image) as u64).ok_or(InstallError::NoProgramArray)?;
    // SAFETY: the token is the address of the image, which the owner keeps until no run that is pinned now is left.
    let installed = unsafe { map.for_programs().install_program(index, image.id, token, owner) };
    installed.map_err(|errno| match errno {
        Errno::E2BIG => InstallError::Index { index, entries: array.len() },
        errno => InstallError::Refused(errno),
    })
}
