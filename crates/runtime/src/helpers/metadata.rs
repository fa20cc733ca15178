//! Facts about a packet besides its bytes: none of a network card, for there is no card (`net/core/xdp.c`), and the context as
//! the kernel has it (`kernel/bpf/helpers.c`).

use paceline_frame::Frame;
use paceline_spec::Errno;

use super::argument::Context;
use super::function::{Int, Pointer};
use super::mem::Unwritten;
use crate::host::Host;

/// `int bpf_xdp_metadata_rx_timestamp(ctx, timestamp)`, as of devices without such metadata.
pub(super) fn no_timestamp(_: &mut Host, _: Context, _: Unwritten) -> Int {
    Int(Err(Errno::EOPNOTSUPP))
}

/// `int bpf_xdp_metadata_rx_hash(ctx, hash, rss_type)` and `bpf_xdp_metadata_rx_vlan_tag(ctx, vlan_proto, vlan_tci)`, as of
/// devices without such metadata.
pub(super) fn no_pair(_: &mut Host, _: Context, _: Unwritten, _: Unwritten) -> Int {
    Int(Err(Errno::EOPNOTSUPP))
}

/// `void *bpf_cast_to_kern_ctx(ctx)`
pub(super) fn kernel_context(host: &mut Host, frame: &mut Frame) -> Pointer {
    Pointer(host.kernel_context(frame))
}
