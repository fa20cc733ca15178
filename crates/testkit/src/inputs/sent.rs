//! Runs of a program over an input.

use std::sync::{Arc, Mutex, PoisonError};

use crate::AnyEngine;
use paceline::generate::{self, Input};
use paceline::{Collection, LoadOptions, Object, Outcome, ProgramSpec};

/// Events and traces, one after the other.
pub(super) type Sent = Vec<u8>;

/// Runs an input, with maps of its own, which come back with the outcome; `None` where the engine lacks something that the program needs.
pub(super) fn run_on(
    object: &Object,
    program: &ProgramSpec,
    (engine, options): (AnyEngine, LoadOptions),
    input: &Input,
) -> Result<Option<(Outcome, Sent, Collection)>, String> {
    let collection = engine.collection(object, options)?;
    let Ok(loaded) = engine.program(&collection, &program.name) else { return Ok(None) };
    generate::fill(object, &collection, input).map_err(|error| paceline::with_causes(&error))?;
    let mut host = generate::host(input);
    let sent = Arc::<Mutex<Vec<u8>>>::default();
    let (traced, sink) = (Arc::clone(&sent), Arc::clone(&sent));
    host.set_trace(Traced(traced));
    host.set_events(Box::new(move |event| {
        let mut sent = sink.lock().unwrap_or_else(PoisonError::into_inner);
        sent.extend_from_slice(event.map.as_bytes());
        sent.extend_from_slice(event.data);
    }));
    let mut burst = generate::burst(input).map_err(|error| paceline::with_causes(&error))?;
    host.arrive(&burst);
    loaded.run_burst(&mut burst, &mut host).map_err(|fault| fault.to_string())?;
    let mut sent = std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
    for map in collection.maps() {
        if let Some(ring) = map.ring_buffer() {
            ring.consume(|data| sent.extend_from_slice(data));
        }
    }
    Ok(Some((generate::outcome(&burst, &host, program.kind), sent, collection)))
}

/// Receives traces.
pub(super) struct Traced(pub(super) Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
