//! Initial and final states of generated programs.

use std::fmt;

use fastrand::Rng;
use paceline_isa::Reg;
use paceline_spec::{MapKind, MapSpec};

/// Registers that steps may use as numbers.
pub(super) const REGISTERS: [Reg; 9] =
    [Reg::R0, Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5, Reg::R6, Reg::R7, Reg::R8];

/// Initialized bytes of stack below `r10`.
pub const STACK: usize = 32;

/// Bytes of memory in the state.
pub(super) const MEMORY: usize = 32;
/// Offset of the stack in the state: after the registers.
pub(super) const STACK_AT: usize = 9 * 8;
/// Offset of the memory.
pub(super) const MEMORY_AT: usize = STACK_AT + STACK;
/// Offset of a word through which steps pass values that the kernel's verifier must not track.
pub(super) const SCRATCH_AT: usize = MEMORY_AT + MEMORY;
const BYTES: usize = SCRATCH_AT + 8;

/// Registers `r0` to `r8`, [`STACK`] bytes of stack, memory, and a scratch word, as one map value holds them.
#[derive(Clone, PartialEq, Eq)]
pub struct State {
    /// Native byte order. Boxed, because errors contain states.
    bytes: Box<[u8; BYTES]>,
}

impl State {
    /// A state of random values, often boundary values.
    #[must_use]
    pub fn random(rng: &mut Rng) -> Self {
        let mut bytes = Box::new([0; BYTES]);
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&interesting(rng).to_ne_bytes());
        }
        Self { bytes }
    }

    /// A state from a value of its map; `None` if the size differs.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self { bytes: Box::new(bytes.try_into().ok()?) })
    }

    /// The value of its map.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    /// Its 64-bit words: nine registers, then stack from the lowest address, memory, scratch.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
    }

    /// The same with one word set to zero.
    pub(super) fn with_zero(&self, word: usize) -> Self {
        let mut state = self.clone();
        if let Some(word) = state.bytes.chunks_exact_mut(8).nth(word) {
            word.fill(0);
        }
        state
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words().enumerate() {
            let at = index * 8;
            match at {
                0..STACK_AT => write!(f, "r{index}={word:#x} ")?,
                STACK_AT..MEMORY_AT => write!(f, "stack[-{}]={word:#x} ", MEMORY_AT - at)?,
                MEMORY_AT..SCRATCH_AT => write!(f, "memory[{}]={word:#x} ", at - MEMORY_AT)?,
                _ => write!(f, "scratch={word:#x}")?,
            }
        }
        Ok(())
    }
}

/// The map that holds the state.
#[must_use]
pub fn state_map() -> MapSpec {
    MapSpec::new("state", MapKind::Array, 4, BYTES as u32, 1)
}

/// A number, often a boundary value.
pub(super) fn interesting(rng: &mut Rng) -> u64 {
    const EDGES: [u64; 22] = [
        0,
        1,
        2,
        31,
        32,
        63,
        64,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
        u64::MAX - 1,
        0xffff_ffff_8000_0000,
    ];
    match rng.u8(0..8) {
        0..=2 => rng.choice(EDGES).unwrap_or(0),
        3 => rng.u64(0..256).wrapping_neg(),
        4 => u64::from(rng.u32(..)),
        5 => 1 << rng.u32(0..64),
        6 => i64::from(rng.i32(..)) as u64,
        _ => rng.u64(..),
    }
}
