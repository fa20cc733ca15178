//! Facts that hold where a load is generated.

use super::demand::Demand;
use super::options::Rules;
use super::order::Order;
use super::simplify::Facts;

/// Context of a load.
pub(super) struct Site<'a> {
    pub(super) facts: &'a Facts,
    pub(super) demand: Demand,
    pub(super) network_offset: u32,
    pub(super) rules: Rules,
    /// Byte order in which the load leaves its value.
    pub(super) order: Order,
}
