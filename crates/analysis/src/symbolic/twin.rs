//! The second of two programs that are compared, and what was found out about both.

use paceline_verifier::Verified;

use crate::symbolic::bounds::Bounds;
use crate::symbolic::give_up::Place;
use crate::symbolic::goal::Input;
use crate::symbolic::order::Order;

/// What was found out about two programs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Inputs on which they differ, each on another pair of paths.
    pub differing: Vec<Input>,
    /// Places at which paths were given up, of the first program (`false`) or the second. Without any, and with fewer inputs than were looked for, the
    /// programs differ on no other pair of paths.
    pub left: Vec<(bool, Place)>,
    /// Pairs of paths that were compared.
    pub pairs: u64,
    /// Paths that were followed.
    pub paths: u64,
    /// What this holds for.
    pub bounds: Bounds,
}

/// The second of two programs that are compared.
pub(crate) struct Twin<'a> {
    pub(crate) programs: [&'a Verified; 2],
    /// In which order their places are taken up.
    pub(crate) orders: [Order; 2],
    /// How often the second program was begun.
    pub(crate) begun: u64,
    /// Inputs on which they differ.
    pub(crate) differing: Vec<Input>,
    /// Most of them.
    pub(crate) most: usize,
    /// Pairs of paths that were compared.
    pub(crate) pairs: u64,
    pub(crate) left: Vec<(bool, Place)>,
}
