//! Records for user space (`kernel/bpf/ringbuf.c`).

use std::ptr::NonNull;

use paceline_maps::RingBuffer;
use paceline_spec::Errno;

use super::args;
use crate::host::Host;

/// `void *bpf_ringbuf_reserve(ringbuf, size, flags)`
pub(super) unsafe extern "C" fn reserve(
    ringbuf: u64,
    size: u64,
    flags: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let ring = unsafe { args::map(ringbuf) }.for_programs().ring_buffer();
    ring.and_then(|ring| ring.reserve_from(size, flags, || Some(host.origin())))
        .map_or(0, |record| record.as_ptr() as u64)
}

/// `void bpf_ringbuf_submit(data, flags)`
pub(super) unsafe extern "C" fn submit(data: u64, flags: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { commit(data, false, flags) };
    0
}

/// `void bpf_ringbuf_discard(data, flags)`
pub(super) unsafe extern "C" fn discard(data: u64, flags: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { commit(data, true, flags) };
    0
}

/// Gives a record back.
///
/// # Safety
/// The address must be that of a record that the program has.
unsafe fn commit(data: u64, discard: bool, flags: u64) {
    if let Some(record) = NonNull::new(data as *mut u8) {
        // SAFETY: the caller vouches for it, and the program's maps live as long as it runs.
        unsafe { RingBuffer::commit(record, discard, flags) };
    }
}

/// `long bpf_ringbuf_output(ringbuf, data, size, flags)`
pub(super) unsafe extern "C" fn output(
    ringbuf: u64,
    data: u64,
    size: u64,
    flags: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, bytes) = unsafe { (args::map(ringbuf), args::bytes(data, size as u32 as usize)) };
    let done = map
        .for_programs()
        .ring_buffer()
        .map_or(Err(Errno::EINVAL), |ring| ring.output_from(&bytes, flags, || Some(host.origin())));
    done.map_or_else(Errno::to_return, |()| 0)
}

/// `u64 bpf_ringbuf_query(ringbuf, flags)`
pub(super) unsafe extern "C" fn query(ringbuf: u64, flags: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { args::map(ringbuf) }.for_programs().ring_buffer().map_or(0, |ring| ring.query(flags))
}
