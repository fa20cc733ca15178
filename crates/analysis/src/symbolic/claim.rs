//! A property that is to be proved, and what was found out about it.

use crate::symbolic::bounds::Bounds;
use crate::symbolic::give_up::Place;
use crate::symbolic::goal::Input;
use crate::symbolic::property::Formula;

/// What was found out about a property.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Inputs with which it does not hold, each on another path.
    pub refuting: Vec<Input>,
    /// Places at which paths were given up. Without any, and with fewer inputs than were looked for, it holds on all other paths.
    pub left: Vec<Place>,
    /// Paths that were followed.
    pub paths: u64,
    /// What it holds for.
    pub bounds: Bounds,
}

/// A property that is to be proved.
pub(crate) struct Claim<'a> {
    pub(crate) property: &'a Formula,
    /// Whether it is about maps.
    pub(crate) is_about_maps: bool,
    pub(crate) refuting: Vec<Input>,
    /// Most of them.
    pub(crate) most: usize,
    pub(crate) left: Vec<Place>,
}
