//! Packets that run one by one, each with its outcome.

use std::sync::{Arc, Mutex, PoisonError};

use paceline_engine::{Arrival, ArrivalError, BurstFault, Fault, Host, Outcome, RanAs};
use paceline_frame::Burst;
use paceline_maps::Map;

use super::world::Scenario;

/// A packet of a session does not run, or a timer's function fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The packet does not enter.
    #[error("packet")]
    Arrival(#[from] ArrivalError),
    /// The run of a packet ends with a fault, which those of verified programs never do.
    #[error("the run ended with a fault: {0}")]
    Fault(Box<Fault>),
    /// A timer's function ends with a fault.
    #[error("a timer's function ended with a fault: {0}")]
    Timer(Box<Fault>),
}

/// Events by map and data.
type Events = Vec<(String, Vec<u8>)>;

/// A scenario that packets run in, one by one, with the events that they send.
pub struct Session {
    /// The host of the scenario.
    pub host: Host,
    burst: Burst,
    ran: RanAs,
    /// Ring buffers of the programs.
    rings: Vec<Arc<Map>>,
    sent: Arc<Mutex<Events>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    /// A session for what `ran` tells, with these maps, on the first CPU. Lines of `bpf_trace_printk` go to standard error.
    #[must_use]
    pub fn new<'m>(scenario: &Scenario, ran: RanAs, maps: impl IntoIterator<Item = &'m Arc<Map>>) -> Self {
        let mut host = scenario.host(0);
        let sent = Arc::<Mutex<Events>>::default();
        let sink = Arc::clone(&sent);
        host.set_events(Box::new(move |event| {
            let event = (event.map.to_owned(), event.data.to_vec());
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }));
        let rings = maps.into_iter().filter(|map| map.ring_buffer().is_some()).map(Arc::clone).collect();
        Self { host, burst: Burst::new(1), ran, rings, sent }
    }

    /// Runs a packet, then the timers that are due, and returns what became of the packet.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn run(
        &mut self,
        packet: &Arrival<'_>,
        run: impl FnOnce(&mut Burst, &mut Host) -> Result<(), BurstFault>,
    ) -> Result<Outcome, SessionError> {
        packet.enter(&mut self.burst, &mut self.host)?;
        run(&mut self.burst, &mut self.host).map_err(|fault| SessionError::Fault(fault.fault))?;
        let outcome = Outcome::of(self.burst.frame(0), &self.host, self.ran, None);
        self.host.fire_timers().map_err(SessionError::Timer)?;
        Ok(outcome)
    }

    /// Map and data of the events since the last call, those of perf event arrays first.
    #[must_use]
    pub fn events(&self) -> Vec<(String, Vec<u8>)> {
        let mut events = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        for map in &self.rings {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|data| events.push((map.spec().name.clone(), data.to_vec())));
            }
        }
        events
    }
}
