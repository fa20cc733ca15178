//! Who receives what programs send: traces and events.

use std::io::Write;

/// An event that a program sends to a perf event array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the map.
    pub map: &'a str,
    /// Index of the buffer, usually that of the program's CPU.
    pub cpu: u32,
    /// Number of the packet, from 1, if the host was told of it (`Host::arrive`).
    pub packet: Option<u64>,
    /// Nanoseconds of the clock that programs see.
    pub time_ns: u64,
    /// Time at which that packet was received in nanoseconds since the epoch; 0 if it is unknown.
    pub received_ns: u64,
    /// The program's data.
    pub data: &'a [u8],
    /// Bytes of the packet, as many as the program asked for.
    pub captured: &'a [u8],
}

/// Receiver of the events that programs send to perf event arrays.
pub type EventSink = Box<dyn FnMut(&Event<'_>) + Send>;

/// The receivers of traces and events.
pub struct Receivers {
    pub(super) trace: Box<dyn Write + Send>,
    pub(super) events: Option<EventSink>,
    /// Whether effects are held.
    rehearses: bool,
}

impl std::fmt::Debug for Receivers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receivers").finish_non_exhaustive()
    }
}

impl Default for Receivers {
    /// Traces go to standard error, events nowhere.
    fn default() -> Self {
        Self { trace: Box::new(std::io::stderr()), events: None, rehearses: false }
    }
}

impl Receivers {
    /// Sends the lines of `bpf_trace_printk` elsewhere.
    pub fn set_trace(&mut self, trace: impl Write + Send + 'static) {
        self.trace = Box::new(trace);
    }

    /// Whether effects are held: what runs is undone, and does not count.
    #[must_use]
    pub fn rehearses(&self) -> bool {
        self.rehearses
    }

    /// Receives the events that programs send to perf event arrays. Without a receiver `bpf_perf_event_output` fails
    /// with `-ENOENT`, as in the kernel when no event is attached.
    pub fn set_events(&mut self, events: EventSink) {
        self.events = Some(events);
    }

    /// Takes the receivers. Programs see whether there is one of events, so another one takes its place.
    pub(super) fn hold(&mut self) -> Self {
        let events = self.events.is_some().then(|| -> EventSink { Box::new(|_| {}) });
        std::mem::replace(self, Self { trace: Box::new(std::io::sink()), events, rehearses: true })
    }
}
