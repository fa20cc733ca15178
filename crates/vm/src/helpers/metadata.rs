//! What is known of a packet besides its bytes: of a network card nothing, for there is no card (`net/core/xdp.c`), and the context as
//! the kernel has it (`kernel/bpf/helpers.c`).

use paceline_spec::Errno;

use super::args;
use crate::host::Host;

/// `int bpf_xdp_metadata_rx_timestamp(ctx, timestamp)`, `..._rx_hash(ctx, hash, rss_type)` and
/// `..._rx_vlan_tag(ctx, vlan_proto, vlan_tci)`, as of devices that have no such metadata.
pub(super) unsafe extern "C" fn none(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    u64::from(Errno::EOPNOTSUPP.to_return() as u32)
}

/// `void *bpf_cast_to_kern_ctx(ctx)`
pub(super) unsafe extern "C" fn kernel_context(
    ctx: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    host.kernel_context(unsafe { args::frame(ctx) })
}
