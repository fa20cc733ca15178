//! The frame of blocks: type, and the length at both ends.

use super::kind::{
    CUSTOM_NOT_COPIED, ENHANCED_HEAD, ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET, SECTION_HEADER,
    SIMPLE_HEAD, SIMPLE_PACKET,
};
use crate::byte_order::ByteOrder;
use crate::sink::Step;

/// Minimum length of a block in bytes: type and two lengths.
pub(crate) const MIN_BLOCK: usize = 12;
/// Maximum length of a block in bytes, as in Wireshark.
pub(crate) const MAX_BLOCK: usize = 16 * 1024 * 1024;

pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// A Custom Block that editing tools may copy.
const CUSTOM: u32 = 0x0000_0bad;
/// Types up to this one are in use, or were.
const LAST_TYPE: u32 = 0x10;

/// Minimum length of a block of this type in bytes.
pub(crate) fn min_len(kind: u32) -> usize {
    match kind {
        SECTION_HEADER => 28,
        ENHANCED_PACKET | PACKET => ENHANCED_HEAD + 4,
        SIMPLE_PACKET => SIMPLE_HEAD + 4,
        INTERFACE_DESCRIPTION => 20,
        _ => MIN_BLOCK,
    }
}

/// Byte order of a section by its byte-order magic.
pub(crate) fn order_of(magic: u32) -> Option<ByteOrder> {
    match magic {
        BYTE_ORDER_MAGIC => Some(ByteOrder::Big),
        magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Some(ByteOrder::Little),
        _ => None,
    }
}

/// Length of the block at the start of `data`, in a section of this byte order.
#[inline]
pub(crate) fn step(data: &[u8], order: ByteOrder) -> Step {
    let Some(head) = data.first_chunk::<MIN_BLOCK>() else { return Step::More(MIN_BLOCK) };
    let kind = order.u32(head, 0);
    let order = match kind {
        SECTION_HEADER => order_of(ByteOrder::Big.u32(head, 8)),
        _ => Some(order),
    };
    let Some(order) = order else { return Step::Bad };
    let len = order.u32(head, 4) as usize;
    if !len.is_multiple_of(4) || len > MAX_BLOCK || len < min_len(kind) {
        return Step::Bad;
    }
    let Some(block) = data.get(..len) else { return Step::More(len) };
    if block.last_chunk() == head[4..].first_chunk::<4>() { Step::Record(len) } else { Step::Bad }
}

/// Whether the type at the start of `data` is a known one.
pub(crate) fn is_likely(data: &[u8], order: ByteOrder) -> bool {
    data.first_chunk::<4>().map(|kind| order.u32(kind, 0)).is_some_and(|kind| {
        (1..=LAST_TYPE).contains(&kind) || matches!(kind, SECTION_HEADER | CUSTOM | CUSTOM_NOT_COPIED)
    })
}
