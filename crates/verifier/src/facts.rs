//! Proven facts about each instruction, for the compilers.

use paceline_isa::{Code, RegSet};
use paceline_spec::{MapSpec, ProgramSpec};

use crate::domain::state::{Buffer, MapRef, Target};
use crate::stats::Stats;

/// Target of a memory access's base register, over all visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The context.
    Context,
    /// The stack of the running function.
    OwnStack,
    /// The stack of a function further out.
    CallerStack,
    /// A value of this map.
    MapValue(MapRef),
    /// A value of different maps on different visits.
    SomeMapValue,
    /// The packet or its metadata.
    Packet,
    /// Memory given to a function or by a helper, or an object of the kernel.
    Memory,
    /// Different targets on different visits, or a slice that may lie in the packet or in a buffer on a stack.
    Mixed,
}

impl Base {
    pub(crate) fn of(target: &Target, depth: usize) -> Option<Self> {
        Some(match target {
            Target::Context => Self::Context,
            Target::Stack { frame } if usize::from(*frame) == depth => Self::OwnStack,
            Target::Stack { .. } => Self::CallerStack,
            Target::MapValue(map) => Self::MapValue(*map),
            Target::Packet { .. } => Self::Packet,
            Target::Slice { buffer: Some(Buffer::Stack { .. }), .. } => Self::Mixed,
            Target::Memory { .. }
            | Target::Slice { .. }
            | Target::Record { .. }
            | Target::Object(_)
            | Target::Map(_) => Self::Memory,
            Target::PacketEnd | Target::Code { .. } | Target::Dynptr { .. } => return None,
        })
    }

    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::MapValue(_) | Self::SomeMapValue, Self::MapValue(_) | Self::SomeMapValue) => {
                Self::SomeMapValue
            }
            _ => Self::Mixed,
        }
    }
}

/// A memory access, over all visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFact {
    /// Target of the access.
    pub base: Base,
    /// Least offset in bytes from where the base starts, the instruction's own included.
    pub min_offset: i64,
    /// Greatest offset of the access's first byte.
    pub max_offset: i64,
    /// For packets: number of bytes proven accessible from the end of the pointer's variable part.
    pub packet_bytes: Option<u16>,
}

/// A map argument of a call, over all visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFact {
    /// Always this map.
    Always(MapRef),
    /// Not always the same.
    Different,
}

/// Facts about one instruction, over all visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsnFact {
    /// Whether some path reaches it; the code generator may drop it otherwise.
    pub reached: bool,
    /// Whether this jump may be taken.
    pub may_jump: bool,
    /// Whether this jump may fall through.
    pub may_fall_through: bool,
    /// The memory it accesses; `None` if it accesses none.
    pub memory: Option<MemoryFact>,
    /// The map that is passed to the call.
    pub map: Option<MapFact>,
    /// The key in an array map that is looked up, where it is always this one.
    pub key: Option<KeyFact>,
    /// The function that the helper calls back.
    pub callback: Option<CallbackFact>,
    /// Bytes of the running function's stack that it reads, directly or in callees.
    pub stack_read: Option<StackFact>,
    /// Whether it uses an address as a number, for example in a 32-bit move of a pointer: the result depends on where
    /// memory is. The kernel refuses that unless `allow_ptr_leaks` is set.
    pub leaks: bool,
}

/// A range of a function's stack, over all visits, in bytes from `r10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFact {
    /// Its first byte.
    pub start: i16,
    /// The byte after its last.
    pub end: i16,
}

/// The callback of a helper call, over all visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackFact {
    /// Always the one that starts at this slot.
    Always(u32),
    /// Not always the same.
    Different,
}

/// The key of a look-up in an array, over all visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFact {
    /// Always this index, which is within the array.
    Always(u32),
    /// Unknown, or not always the same.
    Different,
}

/// Facts about one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionFact {
    /// Its first slot.
    pub start: usize,
    /// The slot after its last.
    pub end: usize,
    /// Bytes of stack it uses, 0 to 512.
    pub stack: u32,
    /// The 8-byte words of its stack that may be read before they are written, and so must be zero on entry: bit `i` stands
    /// for the word at `r10 - 8 * (i + 1)`.
    pub zeroed: u64,
    /// The 8-byte words of its stack that its callees and callbacks read; same numbering.
    pub shared: u64,
    /// Whether it prints memory at addresses, which may be on its stack: all 512 bytes are zeroed and shared then.
    pub prints: bool,
    /// The callee-saved registers (`r6` to `r9`) it writes.
    pub saved: RegSet,
    /// Whether it has a tail call.
    pub tail_calls: bool,
    /// Whether it is a callback.
    pub is_callback: bool,
    /// Whether it calls helpers or functions, so that caller-saved registers do not survive in it.
    pub calls: bool,
}

/// A program that was proven safe, with the facts for the compilers.
#[derive(Clone, Debug)]
pub struct Verified {
    program: ProgramSpec,
    maps: Vec<MapSpec>,
    code: Code,
    insns: Vec<InsnFact>,
    functions: Vec<FunctionFact>,
    stats: Stats,
}

/// The maps of a verified program. Contents are kept only for frozen maps, whose loads are folded to constants.
pub(crate) fn kept_maps(maps: &[MapSpec]) -> Vec<MapSpec> {
    let keep = |map: &MapSpec| MapSpec {
        contents: if map.frozen { map.contents.clone() } else { Vec::new() },
        ..map.clone()
    };
    maps.iter().map(keep).collect()
}

impl Verified {
    pub(crate) fn new(
        program: ProgramSpec,
        maps: Vec<MapSpec>,
        code: Code,
        insns: Vec<InsnFact>,
        functions: Vec<FunctionFact>,
        stats: Stats,
    ) -> Self {
        Self { program, maps, code, insns, functions, stats }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &ProgramSpec {
        &self.program
    }

    /// The maps it was verified with, in the order of the instructions' indices; contents only of frozen ones. The proof
    /// holds only for maps with these specifications.
    #[must_use]
    pub fn maps(&self) -> &[MapSpec] {
        &self.maps
    }

    /// Its instructions.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Facts about the instruction of a slot; the default for slots without one.
    #[must_use]
    pub fn fact(&self, slot: usize) -> InsnFact {
        self.insns.get(slot).copied().unwrap_or_default()
    }

    /// Facts by slot; the default for slots without an instruction.
    #[must_use]
    pub fn facts(&self) -> &[InsnFact] {
        &self.insns
    }

    /// The functions by rising start; the main program first.
    #[must_use]
    pub fn functions(&self) -> &[FunctionFact] {
        &self.functions
    }

    /// Whether there is a tail call anywhere.
    #[must_use]
    pub fn has_tail_calls(&self) -> bool {
        self.functions.iter().any(|f| f.tail_calls)
    }

    /// Cost of the verification.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
