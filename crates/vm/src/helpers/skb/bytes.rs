//! Bytes of the packet.

use paceline_spec::Errno;

use super::with_packet;
use crate::helpers::args;
use crate::host::Host;
use crate::memory;

/// `BPF_F_RECOMPUTE_CSUM`: of the whole packet, which only the kernel has a sum of.
const RECOMPUTE_CSUM: u64 = 1;
/// `BPF_F_INVALIDATE_HASH`
const INVALIDATE_HASH: u64 = 2;

/// `long bpf_skb_store_bytes(skb, offset, from, len, flags)`
pub(super) unsafe extern "C" fn store(
    _: u64,
    offset: u64,
    from: u64,
    len: u64,
    flags: u64,
    host: &mut Host,
) -> u64 {
    if flags & !(RECOMPUTE_CSUM | INVALIDATE_HASH) != 0 {
        return Errno::EINVAL.to_return();
    }
    // SAFETY: the arguments fit the prototype.
    let bytes = unsafe { args::bytes(from, len as u32 as usize) };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe {
        with_packet(host, |packet| {
            packet.span(offset, bytes.len())?.copy_from_slice(&bytes);
            if flags & INVALIDATE_HASH != 0 {
                packet.clear_hash();
            }
            Ok(0)
        })
    }
}

/// `long bpf_skb_pull_data(skb, len)`: all bytes of a packet lie side by side.
pub(super) unsafe extern "C" fn pull(_: u64, len: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    let there = unsafe { args::packet(host) }.len();
    if len as u32 as usize > there { Errno::ENOMEM.to_return() } else { 0 }
}

/// `long bpf_skb_load_bytes_relative(skb, offset, to, len, start_header)`
pub(super) unsafe extern "C" fn load_relative(
    _: u64,
    offset: u64,
    to: u64,
    len: u64,
    start: u64,
    host: &mut Host,
) -> u64 {
    const MAC: u32 = 0;
    const NET: u32 = 1;
    let mut bytes = vec![0; len as u32 as usize];
    let read = |packet: &mut super::Packet<'_>| {
        let start = match start as u32 {
            MAC => 0,
            NET => packet.network() as u64,
            _ => return Err(Errno::EFAULT),
        };
        let offset = u64::from(offset as u32);
        if offset > 0xffff {
            return Err(Errno::EFAULT);
        }
        let span = packet.span(start + offset, bytes.len())?;
        bytes.copy_from_slice(span);
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    let result = unsafe { with_packet(host, read) };
    // SAFETY: the prototype says that `len` bytes at `to` are written.
    unsafe { memory::copy_to(to, &bytes) };
    result
}
