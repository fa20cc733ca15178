//! Packets through a subject, one by one, with everything that programs send.

use std::sync::{Arc, Mutex, PoisonError};

use paceline::explain::Packet;
use paceline::{Burst, BurstFault, Host, PushError, Redirect, TimeSource, Verdict};

use crate::common::failure::CommandError;
use crate::subject::Subject;
use crate::world::World;

/// A packet cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("packet: {0}")]
    TooLong(PushError),
    /// Only programs that were not verified cause one.
    #[error("the run ended with a fault: {}", .0.fault)]
    Fault(BurstFault),
}

impl CommandError for SessionError {}

/// Outcome of a packet.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) code: u32,
    pub(crate) redirect: Option<Redirect>,
    pub(crate) bytes: Vec<u8>,
    /// Map and data of each event since the outcome before, those of perf event arrays first.
    pub(crate) events: Vec<(String, Vec<u8>)>,
}

/// Receives the events of perf event arrays.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A subject with a host, whose time is that of the packets.
pub(crate) struct Session {
    pub(crate) subject: Subject,
    pub(crate) host: Host,
    events: Received,
    burst: Burst,
}

impl Session {
    pub(crate) fn new(subject: Subject, world: &World) -> Self {
        let mut host = world.host(TimeSource::Packets);
        let events = Received::default();
        let sink = Arc::clone(&events);
        host.set_events(Box::new(move |event| {
            let event = (event.map.to_owned(), event.data.to_vec());
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }));
        Self { subject, host, events, burst: Burst::new(1) }
    }

    /// Runs a packet, and the timers that are due before the next one.
    pub(crate) fn run(&mut self, packet: &Packet<'_>) -> Result<(), SessionError> {
        self.burst.clear();
        self.burst.push(packet.bytes, packet.meta).map_err(SessionError::TooLong)?;
        self.burst.frame_mut(0).set_ingress(packet.ingress, packet.queue);
        self.host.arrive(&self.burst);
        self.subject.run_burst(&mut self.burst, &mut self.host).map_err(SessionError::Fault)?;
        // A fault of a timer's function concerns no packet.
        let _ = self.host.fire_timers();
        Ok(())
    }

    /// The outcome of the last packet.
    pub(crate) fn outcome(&self) -> Outcome {
        let mut events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        for map in self.subject.maps() {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|data| events.push((map.spec().name.clone(), data.to_vec())));
            }
        }
        let frame = self.burst.frame(0);
        Outcome {
            verdict: frame.verdict(),
            code: frame.code(),
            redirect: frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect),
            bytes: frame.packet().to_vec(),
            events,
        }
    }
}
