//! Calls of helpers as operations of the form, so that passes see what they do. Code generators expand a module before its passes.

mod key;
mod look_up;
mod rounds;

pub use self::look_up::{ArrayLink, Table, look_ups};
pub use self::rounds::loops;

use paceline_verifier::MapFact;

/// The map of a call, if it is the same in all runs.
#[must_use]
pub fn known_map(fact: Option<MapFact>) -> Option<u32> {
    match fact {
        Some(MapFact::Always(map)) if !map.inner => Some(map.index),
        _ => None,
    }
}
