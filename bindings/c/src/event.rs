//! Events of perf event arrays, as C gets them.

use std::ffi::c_char;

use paceline::Event;

use crate::c_string::c_string;
use crate::raw::Data;

/// A function of C that gets an event: `void (*)(void *data, const struct paceline_event *event)`.
pub type paceline_event_function = Option<unsafe extern "C" fn(data: Data, event: *const paceline_event)>;

/// An event that a program sends with bpf_perf_event_output.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_event {
    /// sizeof(struct paceline_event) of the library, which may be larger than the caller's.
    pub size: usize,
    /// Name of the map; lives during the callback.
    pub map: *const c_char,
    /// The program's data; lives during the callback.
    pub data: *const u8,
    /// Its length in bytes.
    pub length: usize,
    /// Bytes of the packet, as many as the program asked for; lives during the callback.
    pub packet: *const u8,
    /// Their number.
    pub packet_length: usize,
    /// Nanoseconds of the clock that programs see.
    pub time_ns: u64,
    /// Number of the packet on its host, from 1; 0 if not known.
    pub packet_number: u64,
    /// Index of the buffer, usually the program's CPU.
    pub cpu: u32,
    /// 0.
    pub reserved: u32,
}

/// Calls a function with an event as C gets it.
pub(crate) fn with(event: &Event<'_>, call: impl FnOnce(&paceline_event)) {
    let map = c_string(event.map);
    call(&paceline_event {
        size: size_of::<paceline_event>(),
        map: map.as_ptr(),
        data: event.data.as_ptr(),
        length: event.data.len(),
        packet: event.captured.as_ptr(),
        packet_length: event.captured.len(),
        time_ns: event.time_ns,
        packet_number: event.packet.unwrap_or(0),
        cpu: event.cpu,
        reserved: 0,
    });
}
