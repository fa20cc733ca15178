//! Numbers, and boundary values.

use fastrand::Rng;
use paceline_isa::Size;

/// A number, often a boundary value.
pub(super) fn interesting(rng: &mut Rng) -> i64 {
    const EDGES: [i64; 12] = [
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x1_0000,
        i32::MAX as i64,
        i32::MIN as i64,
        1 << 32,
        i64::MAX,
        i64::MIN,
    ];
    match rng.u8(..7) {
        0 => rng.i64(-2..=2),
        1..=2 => rng.i64(-16..=64),
        3 => 1 << rng.u32(..63),
        4 => (1 << rng.u32(..63)) - 1,
        5 => EDGES[rng.usize(..EDGES.len())],
        _ => rng.i64(..),
    }
}

/// Maximum value of a number of a size.
pub(super) fn most_of(size: Size) -> u64 {
    match size {
        Size::B => 0xff,
        Size::H => 0xffff,
        Size::W => 0xffff_ffff,
        Size::Dw => u64::MAX,
    }
}
