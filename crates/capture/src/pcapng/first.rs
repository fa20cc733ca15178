//! Lookahead to the first interface, and to the first packet.

use super::block::step;
use super::brief::brief;
use super::kind::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET, SECTION_HEADER, SIMPLE_PACKET};
use crate::byte_order::ByteOrder;
use crate::error::ReadError;
use crate::input::Input;
use crate::link::Link;
use crate::link_type::LinkType;
use crate::sink::Step;

/// Maximum distance of the lookahead in bytes.
const FARTHEST: usize = 1 << 20;

/// The link of the section's first interface, if it is described before the first packet. Consumes no bytes and reports no errors,
/// which the regular decoder will do.
pub(crate) fn first_interface(input: &mut Input<'_>, order: ByteOrder) -> Result<Option<Link>, ReadError> {
    let mut place = 0;
    while place < FARTHEST && input.require(place + 16)? {
        let Some(head) = input.available().get(place..).and_then(|block| block.first_chunk::<16>()) else {
            break;
        };
        match order.u32(head, 0) {
            INTERFACE_DESCRIPTION => {
                let link_type = LinkType(order.u16(head, 8).into());
                return Ok(Some(Link::new(link_type, order.u32(head, 12), order)));
            }
            PACKET | SIMPLE_PACKET | ENHANCED_PACKET | SECTION_HEADER => break,
            // The minimum block length is 12 bytes; a smaller length is refused when the block is read.
            _ => place += (order.u32(head, 4) as usize).max(12),
        }
    }
    Ok(None)
}

/// Length of the blocks before the first packet or second section, from the beginning of the capture; `place` is the end of the section
/// header. Blocks that cannot be read end them.
pub(crate) fn end_of_descriptions(
    input: &mut Input<'_>,
    mut place: usize,
    order: ByteOrder,
) -> Result<usize, ReadError> {
    while place < FARTHEST && input.require(place + 12)? {
        let kind = kind_at(input.available(), place, order);
        if matches!(kind, Some(PACKET | SIMPLE_PACKET | ENHANCED_PACKET | SECTION_HEADER)) {
            break;
        }
        match step(input.available().get(place..).unwrap_or_default(), order) {
            Step::More(needed) if input.require(place + needed)? => {}
            Step::Record(len) => place += len,
            Step::Bad | Step::More(_) => break,
        }
    }
    Ok(place)
}

/// The section header and the interface descriptions among the blocks of a section's beginning, without options that no packet depends
/// on.
pub(crate) fn descriptions(blocks: &[u8], order: ByteOrder) -> Vec<u8> {
    let (mut found, mut place) = (Vec::new(), 0);
    while let Some(rest) = blocks.get(place..)
        && let Step::Record(len) = step(rest, order)
    {
        if let Some(kind @ (SECTION_HEADER | INTERFACE_DESCRIPTION)) = kind_at(blocks, place, order) {
            found.extend(brief(&rest[..len], kind, order));
        }
        place += len;
    }
    found
}

fn kind_at(data: &[u8], place: usize, order: ByteOrder) -> Option<u32> {
    data.get(place..)?.first_chunk::<4>().map(|kind| order.u32(kind, 0))
}
