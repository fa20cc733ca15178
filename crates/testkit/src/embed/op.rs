//! An operation.

use fastrand::Rng;

use super::finding::Finding;
use super::world::World;

/// An operation of the public API, or a few that belong together.
pub(super) struct Op {
    pub(super) name: &'static str,
    pub(super) weight: u32,
    pub(super) run: fn(&mut World, &mut Rng) -> Finding,
}

pub(super) const fn op(name: &'static str, weight: u32, run: fn(&mut World, &mut Rng) -> Finding) -> Op {
    Op { name, weight, run }
}
