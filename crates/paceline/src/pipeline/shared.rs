//! What the handles, workers and observers of a pipeline share.

use paceline_engine::KeyedSite;

use super::counts::{Errors, PortTotals, Totals};
use super::cpus::CpuQueues;
use super::follow::Follow;
use super::known::KnownMaps;
use super::observe::Observers;

/// What the handles, workers and observers of a pipeline share.
pub(super) struct Shared {
    pub(super) site: KeyedSite,
    pub(super) maps: KnownMaps,
    pub(super) cpu_queues: CpuQueues,
    pub(super) totals: Totals,
    pub(super) ports: PortTotals,
    pub(super) errors: Errors,
    pub(super) observers: Observers,
    pub(super) follow: Follow,
}
