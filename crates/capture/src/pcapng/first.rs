//! Looking ahead to the first interface.

use std::io::Read;

use super::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET, SECTION_HEADER, SIMPLE_PACKET};
use crate::byte_order::ByteOrder;
use crate::input::Input;
use crate::reader::Link;
use crate::{LinkType, ReadError};

/// Bytes that are looked at; what comes so late is not looked for.
const FARTHEST: usize = 1 << 20;

/// What packets of the section's first interface are, if it is described before the first packet. Nothing is used up, and
/// nothing is said of what is broken: whoever reads the blocks will.
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
            // The shortest block is 12 bytes long; one that says less is refused when it is read.
            _ => place += (order.u32(head, 4) as usize).max(12),
        }
    }
    Ok(None)
}
