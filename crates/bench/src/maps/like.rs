//! The maps that are measured.

use paceline::{MapFlags, MapKind};

/// A measured map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Like {
    pub(crate) kind: MapKind,
    pub(crate) key_size: u32,
    pub(crate) entries: u32,
    pub(crate) flags: MapFlags,
}

impl Like {
    pub(crate) const fn new(kind: MapKind, key_size: u32, entries: u32) -> Self {
        Self { kind, key_size, entries, flags: MapFlags(0) }
    }
}

pub(super) fn describe(like: Like) -> String {
    format!("{} of {}, keys of {}", like.kind, like.entries, like.key_size)
}
