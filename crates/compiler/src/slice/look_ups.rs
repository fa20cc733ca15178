//! What slices do with look-ups.

/// Most look-ups on a path of a slice: later ones would wait for results of these anyway.
pub(crate) const MAX_LOOK_UPS: usize = 4;

/// Look-ups in a map, as slices take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUps {
    /// They are in the slice; keys have so many bytes.
    Ahead {
        /// Size of a key in bytes.
        key_size: u32,
    },
    /// They are left out, and their results unknown.
    Unknown,
}
