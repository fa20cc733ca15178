//! Maps in maps: which may be elements, and what the outer map's users do to them.

use std::any::Any;

use paceline_spec::{InnerLength, MapFlags, MapSpec};
use thiserror::Error;

/// The maps in a map, for its users.
pub(crate) trait InnerMaps {
    /// The map that they are in has users from now on.
    fn use_all(&self);

    /// It has none any more. Gives the users of the maps in it, to be dropped outside of locks.
    fn leave_all(&self) -> Box<dyn Any>;
}

/// Why a map cannot be an element of a map of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The map holds no maps.
    #[error("it holds no maps")]
    NoMapOfMaps,
    /// The inner map differs from the template.
    #[error("the {what} of inner maps is {expected}, of this one {found}")]
    Differs {
        /// Name of the property that differs.
        what: &'static str,
        /// Value in the template.
        expected: u32,
        /// Value in this map.
        found: u32,
    },
    /// The special fields of its values differ.
    #[error("locks, timers and the like in values of inner maps are not those of this one's")]
    SpecialFields,
}

/// Compares a map with the template of inner maps (`bpf_map_meta_equal` in `kernel/bpf/map_in_map.c`).
pub(crate) fn compare_inner(like: &MapSpec, map: &MapSpec) -> Result<(), Mismatch> {
    let is_sized = match like.kind.rules().inner_length {
        InnerLength::FixedUnlessFlagged => !like.flags.contains(MapFlags::INNER_MAP),
        InnerLength::Fixed => true,
        InnerLength::Any | InnerLength::Forbidden => false,
    };
    let differs = |(what, expected, found): (&'static str, u32, u32)| {
        (expected != found).then_some(Mismatch::Differs { what, expected, found })
    };
    let first = [
        ("type", like.kind.number(), map.kind.number()),
        ("key size", like.key_size, map.key_size),
        ("value size", like.value_size, map.value_size),
        ("flags", like.flags.0, map.flags.0),
        ("max_entries", like.max_entries, if is_sized { map.max_entries } else { like.max_entries }),
    ]
    .into_iter()
    .find_map(differs);
    match first {
        Some(mismatch) => Err(mismatch),
        None if like.special != map.special => Err(Mismatch::SpecialFields),
        None => Ok(()),
    }
}
