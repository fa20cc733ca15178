//! Events that programs send by perf event arrays and ring buffers, written to a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use paceline::btf::{Btf, Type};
use paceline::capture::PacketLog;
use paceline::json::{decode, decode_written};
use paceline::{Collection, Event, Host, Map, Origin, Record};
use serde_json::json;

use super::args::{EventType, RunArgs};
use crate::common::failure::CommandError;
use crate::common::suggest::closest;
use crate::maps;

/// The reason why events cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventsError {
    #[error("{name}")]
    Write { name: String, source: io::Error },
    #[error("--event-type {map}={name}: {problem}")]
    Type { map: String, name: String, problem: &'static str, hint: Option<String> },
}

impl CommandError for EventsError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Write { .. } => None,
            Self::Type { hint, .. } => hint.clone(),
        }
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The log of events, and the ring buffers that they are read from.
pub(super) struct Events {
    log: Arc<Mutex<Log>>,
    rings: Vec<Arc<Map>>,
    name: String,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventCount {
    /// Events written.
    pub(super) written: u64,
    /// Events lost because a ring buffer was full.
    pub(super) lost: u64,
    /// Events that a capture has no place for: they are no packets, and have none.
    pub(super) left_out: u64,
}

/// The file, and its writer.
struct Log {
    form: Form,
    /// The types of each map's events, with their sizes.
    types: Types,
    /// Events since the last look, which ring buffers give later than perf event arrays.
    pending: Vec<Pending>,
    written: u64,
    left_out: u64,
    failed: Option<io::Error>,
}

/// An event that is not written yet.
struct Pending {
    map: String,
    cpu: u32,
    packet: Option<u64>,
    time_ns: u64,
    received_ns: u64,
    data: Vec<u8>,
    captured: Vec<u8>,
}

/// The type of a map's events, its size, and the BTF that contains it.
type Types = BTreeMap<String, (Arc<Btf>, u32, usize)>;

enum Form {
    /// A JSON object in each line.
    Lines(BufWriter<File>),
    /// The packets among the events.
    Packets(PacketLog<BufWriter<File>>),
}

impl Events {
    /// Events of the maps of collections, to a file in the form that its name asks for.
    pub(super) fn new(
        args: &RunArgs,
        collections: &[&Collection],
        file: Option<(File, String)>,
    ) -> Result<Option<Self>, EventsError> {
        let types = types(&args.event_types, collections)?;
        let Some((path, (file, name))) = args.events.as_deref().zip(file) else { return Ok(None) };
        let out = BufWriter::new(file);
        let form = match is_capture(path) {
            true => Form::Packets(PacketLog::new(out).map_err(|source| failed(&name, source))?),
            false => Form::Lines(out),
        };
        let log = Arc::new(Mutex::new(Log {
            form,
            types,
            pending: Vec::new(),
            written: 0,
            left_out: 0,
            failed: None,
        }));
        let mut rings: Vec<Arc<Map>> = Vec::new();
        for map in collections.iter().flat_map(|collection| collection.maps()) {
            // Several may share one.
            let ring = map.ring_buffer().filter(|_| !rings.iter().any(|other| Arc::ptr_eq(other, map)));
            if let Some(ring) = ring {
                ring.keep_origins();
                rings.push(Arc::clone(map));
            }
        }
        Ok(Some(Self { log, rings, name }))
    }

    /// Receives the events of programs on a host.
    pub(super) fn attach(&self, host: &mut Host) {
        let log = self.log.clone();
        host.set_events(Box::new(move |event| lock(&log).push(event)));
    }

    /// Reads ring buffers, and writes the events since the last call in the order of their times; ends the run on a write error.
    pub(super) fn drain(&self) -> ControlFlow<()> {
        let mut log = lock(&self.log);
        for map in &self.rings {
            let Some(ring) = map.ring_buffer() else { continue };
            ring.consume_records(|Record { data, origin }| {
                let Origin { packet, cpu, time_ns, received_ns } = origin.unwrap_or_default();
                let map = &map.spec().name;
                log.push(&Event { map, cpu, packet, time_ns, received_ns, data, captured: &[] });
            });
        }
        log.write();
        if log.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes the remaining events.
    pub(super) fn finish(self) -> Result<EventCount, EventsError> {
        let _ = self.drain();
        let mut log = lock(&self.log);
        let flushed = match &mut log.form {
            Form::Lines(out) => out.flush(),
            Form::Packets(out) => out.flush(),
        };
        match log.failed.take().map_or(flushed, Err) {
            Ok(()) => {
                let lost =
                    self.rings.iter().filter_map(|map| map.ring_buffer()).map(|ring| ring.lost()).sum();
                Ok(EventCount { written: log.written, lost, left_out: log.left_out })
            }
            Err(source) => Err(failed(&self.name, source)),
        }
    }
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(name: &str, source: io::Error) -> EventsError {
    EventsError::Write { name: name.to_owned(), source }
}

fn is_capture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pcapng")
}

impl Log {
    fn push(&mut self, event: &Event<'_>) {
        let Event { map, cpu, packet, time_ns, received_ns, data, captured } = *event;
        let (map, data, captured) = (map.to_owned(), data.to_vec(), captured.to_vec());
        self.pending.push(Pending { map, cpu, packet, time_ns, received_ns, data, captured });
    }

    /// Writes the events that wait.
    fn write(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|event| (event.received_ns, event.time_ns));
        for event in pending {
            if self.failed.is_some() {
                return;
            }
            match self.try_write(&event) {
                Ok(true) => self.written += 1,
                Ok(false) => self.left_out += 1,
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// False for an event that the form has no place for.
    fn try_write(&mut self, event: &Pending) -> io::Result<bool> {
        let ty = self.types.get(&event.map);
        // The packet follows the type in a record.
        let (data, rest) = match ty {
            Some((_, _, size)) => event.data.split_at_checked(*size).unwrap_or((&event.data, &[])),
            None => (event.data.as_slice(), &[][..]),
        };
        let packet = if event.captured.is_empty() { rest } else { &event.captured };
        match &mut self.form {
            Form::Lines(out) => {
                let (btf, id) = ty.map_or((None, 0), |(btf, id, _)| (Some(&**btf), *id));
                let mut line = serde_json::Map::new();
                line.insert("map".to_owned(), event.map.as_str().into());
                if let Some(number) = event.packet {
                    line.insert("packet".to_owned(), number.into());
                    line.insert("cpu".to_owned(), event.cpu.into());
                    line.insert("time_ns".to_owned(), event.time_ns.into());
                }
                let [typed, written] = [decode(data, btf, id), decode_written(data, btf, id)];
                let [typed, written] = [typed, written].map(|data| json!({ "data": data }));
                line.insert("data".to_owned(), typed["data"].clone());
                if let Some(written) = maps::differing(&typed, &written) {
                    line.insert("written".to_owned(), written);
                }
                if !packet.is_empty() {
                    line.insert("bytes".to_owned(), json!(hex(packet)));
                }
                serde_json::to_writer(&mut *out, &line)?;
                out.write_all(b"\n")?;
                Ok(true)
            }
            // A record is no frame, and readers would take it for one.
            Form::Packets(_) if packet.is_empty() => Ok(false),
            Form::Packets(out) => {
                let comment = match event.packet {
                    Some(number) => format!("packet {number}, cpu {}, data {}", event.cpu, hex(data)),
                    None => format!("data {}", hex(data)),
                };
                // A frame has the time at which it came, as in the capture.
                out.push(&event.map, event.received_ns, packet, &comment)?;
                Ok(true)
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The types that the command line names.
fn types(given: &[EventType], collections: &[&Collection]) -> Result<Types, EventsError> {
    given.iter().map(|given| Ok((given.map.clone(), type_of(given, collections)?))).collect()
}

fn type_of(given: &EventType, collections: &[&Collection]) -> Result<(Arc<Btf>, u32, usize), EventsError> {
    if collections.iter().all(|collection| collection.object().btf().is_none()) {
        return Err(no_type(given, "the object has no BTF", None));
    }
    let Some(collection) = collections.iter().find(|collection| collection.map(&given.map).is_some()) else {
        let maps = collections.iter().flat_map(|collection| collection.maps());
        let names = maps.map(|map| map.spec().name.as_str());
        return Err(no_type(given, "there is no such map", closest(&given.map, names)));
    };
    let found = collection.object().shared_btf().and_then(|btf| {
        let id = btf.find(&given.name, |ty| {
            matches!(ty, Type::Struct(_) | Type::Union(_) | Type::Typedef { .. } | Type::Int(_))
        })?;
        let size = usize::try_from(btf.size_of(id).ok()?).ok()?;
        Some((btf, id, size))
    });
    found.ok_or_else(|| no_type(given, "the object's BTF has no such type", None))
}

fn no_type(given: &EventType, problem: &'static str, hint: Option<String>) -> EventsError {
    EventsError::Type { map: given.map.clone(), name: given.name.clone(), problem, hint }
}
