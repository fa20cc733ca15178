//! Lookahead to the first interface.

use std::io::Read;

use super::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET, SECTION_HEADER, SIMPLE_PACKET};
use crate::byte_order::ByteOrder;
use crate::input::Input;
use crate::reader::Link;
use crate::{LinkType, ReadError};

/// Maximum distance of the lookahead in bytes.
const FARTHEST: usize = 1 << 20;

/// The link of the section's first interface, if it is described before the first packet. Consumes no bytes and reports no errors,
/// which the regular decoder will do.
pub(crate) fn first_interface<R: Read>(
    input: &mut Input<R>,
    order: ByteOrder,
) -> Result<Option<Link>, ReadError> {
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
