//! Bytes of the packet.

use paceline_spec::Errno;

use super::packet::Skb;
use crate::helpers::mem::{ReadMem, WriteMem};
use crate::host::Host;

/// `BPF_F_RECOMPUTE_CSUM`: of the whole packet, which only the kernel has a sum of.
const RECOMPUTE_CSUM: u64 = 1;
/// `BPF_F_INVALIDATE_HASH`
const INVALIDATE_HASH: u64 = 2;

/// `long bpf_skb_store_bytes(skb, offset, from, len, flags)`
pub(super) fn store(
    host: &mut Host,
    mut skb: Skb<'_>,
    offset: u32,
    from: ReadMem<'_>,
    flags: u64,
) -> Result<(), Errno> {
    if flags & !(RECOMPUTE_CSUM | INVALIDATE_HASH) != 0 {
        return Err(Errno::EINVAL);
    }
    let span = skb.span(offset, from.len())?;
    from.copy_to(span);
    if flags & INVALIDATE_HASH != 0 {
        skb.with(host, |packet| packet.clear_hash());
    }
    Ok(())
}

/// `long bpf_skb_pull_data(skb, len)`: all bytes of a packet are contiguous.
pub(super) fn pull(_: &mut Host, skb: Skb<'_>, len: u32) -> Result<(), Errno> {
    if len as usize > skb.len() { Err(Errno::ENOMEM) } else { Ok(()) }
}

/// `long bpf_skb_load_bytes_relative(skb, offset, to, len, start_header)`
pub(super) fn load_relative(
    host: &mut Host,
    mut skb: Skb<'_>,
    offset: u32,
    to: WriteMem<'_>,
    start: u32,
) -> Result<(), Errno> {
    const MAC: u32 = 0;
    const NET: u32 = 1;
    let start = match start {
        MAC => Ok(0),
        NET => Ok(skb.with(host, |packet| packet.network() as u32)),
        _ => Err(Errno::EFAULT),
    };
    let found = start.and_then(|start| match offset {
        0..=0xffff => skb.span(start + offset, to.len()),
        _ => Err(Errno::EFAULT),
    });
    found.map(|bytes| to.write(bytes)).inspect_err(|_| to.clear())
}
