//! Names of sizes and regions, and numbers of values and blocks.

use paceline_isa::Size;

use crate::ir::types::Region;

/// Numbers of values and blocks are printed as they are if they are below it, so that text before and after a pass can be compared, and
/// otherwise in the order of their definitions.
pub(super) const NUMBERS: usize = 1 << 20;

/// Sizes of accesses: unsigned, and signed.
pub(super) const SIZES: [(Size, &str, &str); 4] =
    [(Size::B, "u8", "s8"), (Size::H, "u16", "s16"), (Size::W, "u32", "s32"), (Size::Dw, "u64", "s64")];

/// Regions without a map.
pub(super) const REGIONS: [(Region, &str); 6] = [
    (Region::Stack, "stack"),
    (Region::CallerStack, "caller_stack"),
    (Region::Packet, "packet"),
    (Region::SomeMapValue, "map_value"),
    (Region::Memory, "memory"),
    (Region::Mixed, "mixed"),
];
