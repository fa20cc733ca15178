//! Facts about a packet besides its bytes: those of its device, if the port has them (`net/core/xdp.c`), and the context as
//! the kernel has it (`kernel/bpf/helpers.c`).

use paceline_frame::{DeviceMetadata, Frame};
use paceline_spec::Errno;

use super::function::{Int, Pointer};
use super::mem::WriteBytes;
use crate::host::Host;

/// The device's facts about a packet, if `error` of them is 0; without a device that has such functions it is `EOPNOTSUPP`.
fn told(frame: &Frame, error: impl Fn(&DeviceMetadata) -> u16) -> Result<DeviceMetadata, Errno> {
    let metadata = frame.device_metadata().ok_or(Errno::EOPNOTSUPP)?;
    match error(&metadata) {
        0 => Ok(metadata),
        error => Err(Errno(error)),
    }
}

/// `int bpf_xdp_metadata_rx_timestamp(ctx, timestamp)`
pub(super) fn timestamp(_: &mut Host, frame: &mut Frame, time: WriteBytes<'_, 8>) -> Int {
    let told = told(frame, |metadata| metadata.timestamp_error);
    Int::of(told.map(|metadata| time.write(metadata.timestamp_ns.to_ne_bytes())))
}

/// `int bpf_xdp_metadata_rx_hash(ctx, hash, rss_type)`
pub(super) fn hash(_: &mut Host, frame: &mut Frame, hash: WriteBytes<'_, 4>, kind: WriteBytes<'_, 4>) -> Int {
    let told = told(frame, |metadata| metadata.hash_error);
    Int::of(told.map(|metadata| {
        hash.write(metadata.hash.to_ne_bytes());
        kind.write(metadata.hash_type.to_ne_bytes());
    }))
}

/// `int bpf_xdp_metadata_rx_vlan_tag(ctx, vlan_proto, vlan_tci)`
pub(super) fn vlan_tag(
    _: &mut Host,
    frame: &mut Frame,
    protocol: WriteBytes<'_, 2>,
    tag: WriteBytes<'_, 2>,
) -> Int {
    let told = told(frame, |metadata| metadata.vlan_error);
    Int::of(told.map(|metadata| {
        protocol.write(metadata.vlan_protocol);
        tag.write(metadata.vlan_tag.to_ne_bytes());
    }))
}

/// `void *bpf_cast_to_kern_ctx(ctx)`
pub(super) fn kernel_context(host: &mut Host, frame: &mut Frame) -> Pointer {
    Pointer(host.held.kernel_context(frame))
}
