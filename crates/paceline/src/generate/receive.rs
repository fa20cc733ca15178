//! Events and traces of a run.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_engine::Host;
use paceline_maps::Map;

use super::left::Event;
use crate::load::Collection;

/// What programs have sent so far.
pub(super) struct Receiver {
    events: Arc<Mutex<Vec<Event>>>,
    traces: Shared,
    /// Ring buffers, and the records that were taken from them.
    rings: Vec<(Arc<Map>, Vec<Event>)>,
}

impl Receiver {
    /// Receives what programs send in a host, and to ring buffers.
    pub(super) fn new(collection: &Collection, host: &mut Host) -> Self {
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let sink = Arc::clone(&events);
        host.set_events(Box::new(move |event| {
            let event = Event {
                map: event.map.to_owned(),
                data: event.data.to_vec(),
                captured: event.captured.to_vec(),
            };
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }));
        let traces = Shared::default();
        host.set_trace(traces.clone());
        let rings = collection.maps().iter().filter(|map| map.ring_buffer().is_some());
        Self { events, traces, rings: rings.map(|map| (Arc::clone(map), Vec::new())).collect() }
    }

    /// All events so far, those of ring buffers at last, and all traces.
    pub(super) fn sent(&mut self) -> (Vec<Event>, Vec<u8>) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (map, records) in &mut self.rings {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|data| {
                    let map = map.spec().name.clone();
                    records.push(Event { map, data: data.to_vec(), captured: Vec::new() });
                });
            }
            events.extend(records.iter().cloned());
        }
        (events, self.traces.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Bytes that are written from elsewhere.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
