//! How full a map is taken to be.

/// How full a map is taken to be when the memory of its look-ups is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// As full as it has been: places of deleted elements are used again, so that they count too.
    Now,
    /// With all elements that it has room for.
    Full,
}
