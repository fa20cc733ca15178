//! The counters that an object has for coverage.

use paceline_analysis::coverage::Plan;

/// The counters of an object's programs.
#[derive(Clone, Debug)]
pub(crate) struct Plans {
    /// Names of the maps that hold them, which no other maps of the object have.
    pub(crate) maps: Vec<String>,
    /// Each with the index of its map among these, and the offset of its counters in the map's value.
    pub(crate) plans: Vec<(usize, usize, Plan)>,
}
