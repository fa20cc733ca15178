//! Events to user space (`bpf_xdp_event_output` in `net/core/filter.c`).

use paceline_frame::Frame;
use paceline_maps::Map;
use paceline_spec::Errno;

use super::mem::ReadMem;
use crate::host::Host;

/// Bits of the flags with the index of the element; all ones for this CPU's.
const INDEX: u64 = 0xffff_ffff;
/// Bits with the number of bytes of the packet that follow the data.
const PACKET_LEN: u64 = 0xf_ffff << 32;

/// `long bpf_perf_event_output(ctx, map, flags, data, size)`
pub(super) fn perf_event_output(
    host: &mut Host,
    frame: &mut Frame,
    map: &Map,
    flags: u64,
    data: ReadMem<'_>,
) -> Result<(), Errno> {
    if flags & !(INDEX | PACKET_LEN) != 0 {
        return Err(Errno::EINVAL);
    }
    let packet_len = ((flags & PACKET_LEN) >> 32) as usize;
    let packet = frame.packet().get(..packet_len).ok_or(Errno::EFAULT)?;
    let index = match (flags & INDEX) as u32 {
        u32::MAX => host.cpu() as u32,
        index => index,
    };
    if index >= map.spec().max_entries {
        return Err(Errno::E2BIG);
    }
    match data.with(|data| host.event(&map.spec().name, index, data, packet)) {
        true => Ok(()),
        false => Err(Errno::ENOENT),
    }
}
