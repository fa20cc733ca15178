//! Types of blocks, and the lengths of their headers.

/// Type of a Section Header Block, the same in either byte order.
pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
/// The obsolete Packet Block, with the layout of an Enhanced Packet Block except for a 16-bit interface number.
pub(crate) const PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// A Custom Block that editing tools must not copy.
pub(crate) const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;

/// Size in bytes of a Simple Packet Block's header, before the packet.
pub(crate) const SIMPLE_HEAD: usize = 12;
/// Size in bytes of a Packet Block's or Enhanced Packet Block's header, before the packet.
pub(crate) const ENHANCED_HEAD: usize = 28;
