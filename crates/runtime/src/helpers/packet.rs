//! Helpers on the packet (`net/core/filter.c`, the `bpf_xdp_` ones).

use paceline_frame::{AdjustError, Frame};
use paceline_spec::Errno;

use super::mem::{ReadMem, WriteMem};
use crate::host::Host;

/// Moves an end of the packet: `EACCES` for a length that metadata cannot have, otherwise `EINVAL`, as the kernel returns.
fn adjust(
    frame: &mut Frame,
    host: &Host,
    change: impl FnOnce(&mut Frame) -> Result<(), AdjustError>,
) -> Result<(), Errno> {
    change(frame).map_err(|error| match error {
        AdjustError::BadMetadata => Errno::EACCES,
        AdjustError::NoRoom | AdjustError::TooShort => Errno::EINVAL,
    })?;
    host.held.packet_moved(frame);
    Ok(())
}

/// `long bpf_xdp_adjust_head(ctx, delta)`
pub(super) fn adjust_head(host: &mut Host, frame: &mut Frame, delta: i32) -> Result<(), Errno> {
    adjust(frame, host, |frame| frame.adjust_head(delta))
}

/// `long bpf_xdp_adjust_meta(ctx, delta)`
pub(super) fn adjust_meta(host: &mut Host, frame: &mut Frame, delta: i32) -> Result<(), Errno> {
    adjust(frame, host, |frame| frame.adjust_meta(delta))
}

/// `long bpf_xdp_adjust_tail(ctx, delta)`
pub(super) fn adjust_tail(host: &mut Host, frame: &mut Frame, delta: i32) -> Result<(), Errno> {
    adjust(frame, host, |frame| frame.adjust_tail(delta))
}

/// `u64 bpf_xdp_get_buff_len(ctx)`
pub(super) fn get_buff_len(_: &mut Host, frame: &mut Frame) -> u64 {
    frame.len() as u64
}

/// The `len` bytes at `offset` of the packet, or what `bpf_xdp_pointer` fails with.
fn span(frame: &mut Frame, offset: u32, len: usize) -> Result<&mut [u8], Errno> {
    let offset = offset as usize;
    if offset > 0xffff {
        return Err(Errno::EFAULT);
    }
    let end = offset.checked_add(len).ok_or(Errno::EINVAL)?;
    frame.packet_mut().get_mut(offset..end).ok_or(Errno::EINVAL)
}

/// `long bpf_xdp_load_bytes(ctx, offset, buf, len)`
pub(super) fn load_bytes(
    _: &mut Host,
    frame: &mut Frame,
    offset: u32,
    buf: WriteMem<'_>,
) -> Result<(), Errno> {
    buf.write(span(frame, offset, buf.len())?);
    Ok(())
}

/// `long bpf_xdp_store_bytes(ctx, offset, buf, len)`
pub(super) fn store_bytes(
    _: &mut Host,
    frame: &mut Frame,
    offset: u32,
    buf: ReadMem<'_>,
) -> Result<(), Errno> {
    let span = span(frame, offset, buf.len())?;
    buf.copy_to(span);
    Ok(())
}

/// `long bpf_skb_load_bytes_relative(skb, offset, to, len, start_header)`: offsets from the Ethernet header or from that of the
/// network, which follows it.
pub(super) fn skb_load_bytes_relative(
    host: &mut Host,
    frame: &mut Frame,
    offset: u32,
    to: WriteMem<'_>,
    start: u32,
) -> Result<(), Errno> {
    const MAC: u32 = 0;
    const NET: u32 = 1;
    const ETHERNET_HEADER: u32 = 14;
    let offset = match start {
        MAC => offset,
        NET => offset.saturating_add(ETHERNET_HEADER),
        // No packet is as long.
        _ => u32::MAX,
    };
    skb_load_bytes(host, frame, offset, to)
}

/// `long bpf_skb_load_bytes(skb, offset, to, len)`: zeros where the packet does not have all bytes.
pub(super) fn skb_load_bytes(
    _: &mut Host,
    frame: &mut Frame,
    offset: u32,
    to: WriteMem<'_>,
) -> Result<(), Errno> {
    let offset = offset as usize;
    let found = offset.checked_add(to.len()).and_then(|end| frame.packet().get(offset..end));
    match found {
        Some(bytes) => to.write(bytes),
        None => to.clear(),
    }
    found.map(drop).ok_or(Errno::EFAULT)
}
