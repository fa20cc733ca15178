//! What a network card knows of a packet (`net/core/xdp.c`): nothing, for there is no card.

use paceline_spec::Errno;

use crate::host::Host;

/// `int bpf_xdp_metadata_rx_timestamp(ctx, timestamp)`, `..._rx_hash(ctx, hash, rss_type)` and
/// `..._rx_vlan_tag(ctx, vlan_proto, vlan_tci)`, as of devices that have no such metadata.
pub(super) unsafe extern "C" fn none(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    u64::from(Errno::EOPNOTSUPP.to_return() as u32)
}
