//! Events to user space (`bpf_xdp_event_output` in `net/core/filter.c`).

use paceline_spec::Errno;

use super::args;
use crate::host::Host;

/// The bits of the flags that choose the element: an index, or this CPU's when all are set.
const INDEX: u64 = 0xffff_ffff;
/// The bits that say how much of the packet follows the data.
const PACKET_LEN: u64 = 0xf_ffff << 32;

/// `long bpf_perf_event_output(ctx, map, flags, data, size)`
pub(super) unsafe extern "C" fn perf_event_output(
    _: u64,
    map: u64,
    flags: u64,
    data: u64,
    size: u64,
    host: &mut Host,
) -> u64 {
    if flags & !(INDEX | PACKET_LEN) != 0 {
        return Errno::EINVAL.to_return();
    }
    // SAFETY: the arguments fit the prototype.
    let (frame, map, data) =
        unsafe { (args::packet(host), args::map(map), args::bytes(data, size as u32 as usize)) };
    let packet_len = ((flags & PACKET_LEN) >> 32) as usize;
    let Some(packet) = frame.packet().get(..packet_len) else { return Errno::EFAULT.to_return() };
    let index = match (flags & INDEX) as u32 {
        u32::MAX => host.cpu() as u32,
        index => index,
    };
    if index >= map.spec().max_entries {
        return Errno::E2BIG.to_return();
    }
    if host.event(&map.spec().name, index, &data, packet) { 0 } else { Errno::ENOENT.to_return() }
}
