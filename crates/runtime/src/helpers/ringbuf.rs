//! Records for user space (`kernel/bpf/ringbuf.c`).

use paceline_maps::Map;
use paceline_spec::Errno;

use super::argument::Record;
use super::function::Pointer;
use super::mem::ReadMem;
use crate::host::Host;

/// `void *bpf_ringbuf_reserve(ringbuf, size, flags)`
pub(super) fn reserve(host: &mut Host, map: &Map, size: u64, flags: u64) -> Pointer {
    let ring = map.for_programs().ring_buffer();
    let record = ring.and_then(|ring| ring.reserve_from(size, flags, || Some(host.origin())));
    Pointer(record.map_or(0, |record| record.as_ptr() as u64))
}

/// `void bpf_ringbuf_submit(data, flags)`
pub(super) fn submit(_: &mut Host, record: Record, flags: u64) {
    record.commit(false, flags);
}

/// `void bpf_ringbuf_discard(data, flags)`
pub(super) fn discard(_: &mut Host, record: Record, flags: u64) {
    record.commit(true, flags);
}

/// `long bpf_ringbuf_output(ringbuf, data, size, flags)`
pub(super) fn output(host: &mut Host, map: &Map, data: ReadMem<'_>, flags: u64) -> Result<(), Errno> {
    let ring = map.for_programs().ring_buffer().ok_or(Errno::EINVAL)?;
    data.with(|data| ring.output_from(data, flags, || Some(host.origin())))
}

/// `u64 bpf_ringbuf_query(ringbuf, flags)`
pub(super) fn query(_: &mut Host, map: &Map, flags: u64) -> u64 {
    map.for_programs().ring_buffer().map_or(0, |ring| ring.query(flags))
}
