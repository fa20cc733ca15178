//! What programs observe besides packets and maps.

use std::sync::Arc;

use paceline_engine::{Host, TimeSource};
use paceline_network::Network;

use super::origin::Origin;

/// What programs observe besides packets and maps.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Scenario {
    /// The network; without one there are a loopback interface, no routes and no sockets.
    pub network: Option<Arc<Network>>,
    /// Where packets come from.
    pub origin: Origin,
    /// Source of the time.
    pub time: TimeSource,
    /// Seed of random numbers and cookies; without one they differ between runs.
    pub seed: Option<u64>,
}

impl Scenario {
    /// A host of the scenario, for the worker of a number. Events of perf event arrays have a receiver, as they do in use, which drops them.
    #[must_use]
    pub fn host(&self, cpu: usize) -> Host {
        let mut host = Host::new(cpu);
        if let Some(network) = &self.network {
            host.set_network(Arc::clone(network));
        }
        if let Some(seed) = self.seed {
            host.seed(seed);
        }
        host.set_time(self.time);
        host.set_arriving(self.origin.context);
        host.set_events(Box::new(|_| {}));
        host
    }
}
