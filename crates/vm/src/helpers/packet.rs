//! Helpers on the packet (`net/core/filter.c`, the `bpf_xdp_` ones).

use paceline_frame::{AdjustError, Frame};
use paceline_spec::Errno;

use super::args;
use crate::host::Host;
use crate::memory;

/// Moves an end of the packet, and gives what the kernel's adjust helpers return: `-EACCES` for a length that metadata cannot have, else `-EINVAL`.
fn adjust(frame: &mut Frame, host: &Host, change: impl FnOnce(&mut Frame) -> Result<(), AdjustError>) -> u64 {
    match change(frame) {
        Ok(()) => {
            host.packet_moved(frame);
            0
        }
        Err(AdjustError::BadMetadata) => Errno::EACCES.to_return(),
        Err(AdjustError::NoRoom | AdjustError::TooShort) => Errno::EINVAL.to_return(),
    }
}

/// `long bpf_xdp_adjust_head(ctx, delta)`
pub(super) unsafe extern "C" fn adjust_head(
    ctx: u64,
    delta: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    adjust(unsafe { args::frame(ctx) }, host, |frame| frame.adjust_head(delta as i32))
}

/// `long bpf_xdp_adjust_meta(ctx, delta)`
pub(super) unsafe extern "C" fn adjust_meta(
    ctx: u64,
    delta: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    adjust(unsafe { args::frame(ctx) }, host, |frame| frame.adjust_meta(delta as i32))
}

/// `long bpf_xdp_adjust_tail(ctx, delta)`
pub(super) unsafe extern "C" fn adjust_tail(
    ctx: u64,
    delta: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    adjust(unsafe { args::frame(ctx) }, host, |frame| frame.adjust_tail(delta as i32))
}

/// `u64 bpf_xdp_get_buff_len(ctx)`
pub(super) unsafe extern "C" fn get_buff_len(ctx: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    unsafe { args::frame(ctx) }.len() as u64
}

/// The `len` bytes at `offset` of the packet, or what `bpf_xdp_pointer` fails with.
fn span(frame: &mut Frame, offset: u64, len: u64) -> Result<&mut [u8], Errno> {
    let (offset, len) = (offset as u32 as usize, len as u32 as usize);
    if offset > 0xffff {
        return Err(Errno::EFAULT);
    }
    let end = offset.checked_add(len).ok_or(Errno::EINVAL)?;
    frame.packet_mut().get_mut(offset..end).ok_or(Errno::EINVAL)
}

/// `long bpf_xdp_load_bytes(ctx, offset, buf, len)`
pub(super) unsafe extern "C" fn load_bytes(
    ctx: u64,
    offset: u64,
    buf: u64,
    len: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    match span(unsafe { args::frame(ctx) }, offset, len) {
        Ok(bytes) => {
            // SAFETY: the prototype says that `len` bytes at `buf` are written; they may overlap the packet, which
            // the copy byte by byte allows.
            unsafe { memory::copy_to(buf, bytes) };
            0
        }
        Err(errno) => errno.to_return(),
    }
}

/// `long bpf_xdp_store_bytes(ctx, offset, buf, len)`
pub(super) unsafe extern "C" fn store_bytes(
    ctx: u64,
    offset: u64,
    buf: u64,
    len: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let bytes = unsafe { args::bytes(buf, len as u32 as usize) };
    // SAFETY: as above.
    match span(unsafe { args::frame(ctx) }, offset, len) {
        Ok(span) => {
            span.copy_from_slice(&bytes);
            0
        }
        Err(errno) => errno.to_return(),
    }
}

/// `long bpf_skb_load_bytes_relative(skb, offset, to, len, start_header)`: offsets from the Ethernet header or from that of the
/// network, which follows it.
pub(super) unsafe extern "C" fn skb_load_bytes_relative(
    context: u64,
    offset: u64,
    to: u64,
    len: u64,
    start: u64,
    host: &mut Host,
) -> u64 {
    const MAC: u32 = 0;
    const NET: u32 = 1;
    const ETHERNET_HEADER: u64 = 14;
    let offset = u64::from(offset as u32);
    let offset = match start as u32 {
        MAC => offset,
        NET => offset + ETHERNET_HEADER,
        // Nothing is there.
        _ => u64::from(u32::MAX),
    };
    let offset = offset.min(u64::from(u32::MAX));
    // SAFETY: the prototype is the same but for the last argument.
    unsafe { skb_load_bytes(context, offset, to, len, 0, host) }
}

/// `long bpf_skb_load_bytes(skb, offset, to, len)`: what it cannot read it leaves as zeros.
pub(super) unsafe extern "C" fn skb_load_bytes(
    _: u64,
    offset: u64,
    to: u64,
    len: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let (offset, len) = (offset as u32 as usize, len as u32 as usize);
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    let packet = unsafe { args::packet(host) }.packet();
    let found = offset.checked_add(len).and_then(|end| packet.get(offset..end));
    let zeros;
    let (bytes, result) = match found {
        Some(bytes) => (bytes, 0),
        None => {
            zeros = vec![0; len];
            (zeros.as_slice(), Errno::EFAULT.to_return())
        }
    };
    // SAFETY: the prototype says that `len` bytes at `to` are written; filters have no pointer into the packet.
    unsafe { memory::copy_to(to, bytes) };
    result
}
