//! Descriptions without what no packet depends on, so that those of a capture are few bytes, whatever their blocks contain.

use super::interface::{IF_TSOFFSET, IF_TSRESOL};
use super::kind::SECTION_HEADER;
use super::option::{Options, OutsideBlock};
use crate::byte_order::ByteOrder;

/// Bytes of a section header before its options, and of an interface description.
const SECTION_HEAD: usize = 24;
const INTERFACE_HEAD: usize = 16;

/// A section header without options, or an interface description with those of its clock. One that cannot be decoded still cannot.
pub(crate) fn brief(block: &[u8], kind: u32, order: ByteOrder) -> Vec<u8> {
    let head_len = if kind == SECTION_HEADER { SECTION_HEAD } else { INTERFACE_HEAD };
    let (Some(mut brief), Some(end)) =
        (block.get(..head_len).map(<[u8]>::to_vec), block.len().checked_sub(4))
    else {
        return block.to_vec();
    };
    if kind != SECTION_HEADER {
        brief.extend(clock_options(block.get(head_len..end).unwrap_or_default(), order));
    }
    let len = order.bytes(u32::try_from(brief.len() + 4).unwrap_or(u32::MAX));
    brief[4..8].copy_from_slice(&len);
    brief.extend(len);
    brief
}

/// The last options of each kind that a clock has, and the first one that is malformed.
fn clock_options(options: &[u8], order: ByteOrder) -> Vec<u8> {
    let (mut resolution, mut offset, mut malformed): (&[u8], &[u8], Vec<u8>) = (&[], &[], Vec::new());
    for option in Options::new(options, order) {
        match option {
            Ok(option) => match (option.code, option.value.len()) {
                (IF_TSRESOL, 1) => resolution = option.whole,
                (IF_TSOFFSET, 8) => offset = option.whole,
                // Of a wrong size, as one of no bytes.
                (IF_TSRESOL | IF_TSOFFSET, _) => {
                    malformed = [order.bytes16(option.code), order.bytes16(0)].concat();
                }
                _ => {}
            },
            // Its length, which no block of this size has room for.
            Err(OutsideBlock { code }) => {
                malformed = [order.bytes16(code), order.bytes16(u16::MAX)].concat();
            }
        }
        if !malformed.is_empty() {
            break;
        }
    }
    [resolution, offset, &malformed].concat()
}
