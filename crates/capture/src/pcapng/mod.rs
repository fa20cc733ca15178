//! The pcapng format: sections that consist of blocks.
//!
//! Layout: draft-ietf-opsawg-pcapng. Blocks are copied unchanged; only the parts that packets depend on are decoded.

mod block;
mod brief;
mod decoder;
mod first;
mod interface;
mod kind;
mod option;

pub(crate) use block::{is_likely, step};
pub(crate) use decoder::{Decoder, unsized_section};
pub(crate) use first::{descriptions, end_of_descriptions, first_interface};
pub(crate) use kind::{ENHANCED_PACKET, SECTION_HEADER, SIMPLE_HEAD, SIMPLE_PACKET};
pub(crate) use option::{ALTERED_BY_EDITING, Options};
