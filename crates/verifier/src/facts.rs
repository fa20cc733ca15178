//! Proven facts about each instruction, for the compilers.

use paceline_isa::{Callee, Code, Insn, Reg, RegSet};
use paceline_spec::helper::HelperId;
use paceline_spec::{MapSpec, ProgramSpec};

use crate::domain::state::{Buffer, MAX_STACK, MapRef, Pointer, Target};
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
    fn of(target: &Target, depth: usize) -> Option<Self> {
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

    fn join(self, other: Self) -> Self {
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

/// Facts while they are gathered.
#[derive(Debug)]
pub(crate) struct Facts {
    insns: Vec<InsnFact>,
}

impl Facts {
    pub(crate) fn new(slots: usize) -> Self {
        Self { insns: vec![InsnFact::default(); slots] }
    }

    pub(crate) fn into_insns(self) -> Vec<InsnFact> {
        self.insns
    }

    fn change(&mut self, slot: usize, change: impl FnOnce(&mut InsnFact)) {
        if let Some(fact) = self.insns.get_mut(slot) {
            change(fact);
        }
    }

    pub(crate) fn reached(&mut self, slot: usize) {
        self.change(slot, |fact| fact.reached = true);
    }

    pub(crate) fn branch(&mut self, slot: usize, taken: bool) {
        self.change(slot, |fact| if taken { fact.may_jump = true } else { fact.may_fall_through = true });
    }

    /// Adds an access through `pointer` at the instruction's own `offset`, in a frame of `depth`.
    pub(crate) fn memory(&mut self, slot: usize, pointer: &Pointer, offset: i16, depth: usize) {
        let Some(base) = Base::of(&pointer.target, depth) else { return };
        let fixed = i64::from(pointer.fixed) + i64::from(offset);
        let new = MemoryFact {
            base,
            min_offset: fixed.saturating_add(pointer.variable.smin()),
            max_offset: fixed.saturating_add(pointer.variable.smax()),
            packet_bytes: match pointer.target {
                Target::Packet { range: crate::domain::state::PacketRange::Bytes(bytes), .. } => Some(bytes),
                _ => None,
            },
        };
        self.change(slot, |fact| {
            fact.memory = Some(fact.memory.map_or(new, |old| MemoryFact {
                base: old.base.join(new.base),
                min_offset: old.min_offset.min(new.min_offset),
                max_offset: old.max_offset.max(new.max_offset),
                packet_bytes: old.packet_bytes.zip(new.packet_bytes).map(|(a, b)| a.min(b)),
            }));
        });
    }

    pub(crate) fn map(&mut self, slot: usize, map: MapRef) {
        self.change(slot, |fact| {
            fact.map = Some(match fact.map {
                None => MapFact::Always(map),
                Some(MapFact::Always(old)) if old == map => MapFact::Always(map),
                Some(_) => MapFact::Different,
            });
        });
    }

    pub(crate) fn key(&mut self, slot: usize, key: Option<u32>) {
        self.change(slot, |fact| {
            fact.key = Some(match (fact.key, key) {
                (None, Some(key)) => KeyFact::Always(key),
                (Some(KeyFact::Always(old)), Some(key)) if old == key => KeyFact::Always(key),
                _ => KeyFact::Different,
            });
        });
    }

    pub(crate) fn callback(&mut self, slot: usize, start: usize) {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        self.change(slot, |fact| {
            fact.callback = Some(match fact.callback {
                None => CallbackFact::Always(start),
                Some(CallbackFact::Always(old)) if old == start => CallbackFact::Always(start),
                Some(_) => CallbackFact::Different,
            });
        });
    }

    /// Adds bytes that are read from the running function's stack.
    pub(crate) fn stack_read(&mut self, slot: usize, offset: i64, size: u64) {
        // No overflow: `check_stack` checked that the access is within the stack.
        let start = offset.max(-i64::from(MAX_STACK)) as i16;
        let end = offset.saturating_add_unsigned(size).min(0) as i16;
        self.change(slot, |fact| {
            fact.stack_read = Some(fact.stack_read.map_or(StackFact { start, end }, |old| StackFact {
                start: old.start.min(start),
                end: old.end.max(end),
            }));
        });
    }

    pub(crate) fn leak(&mut self, slot: usize) {
        self.change(slot, |fact| fact.leaks = true);
    }

    /// Base of earlier visits of a slot.
    pub(crate) fn base(&self, slot: usize) -> Option<Base> {
        self.insns.get(slot).and_then(|fact| fact.memory).map(|memory| memory.base)
    }
}

/// The callee-saved registers that a range of code writes.
pub(crate) fn saved_registers(code: &Code, start: usize, end: usize) -> RegSet {
    let written = (start..end).filter_map(|slot| code.get(slot)).filter(|insn| !insn.is_call());
    let all = written.fold(RegSet::EMPTY, |all, insn| all.union(insn.writes()));
    all.intersection(RegSet::CALLEE_SAVED).minus(RegSet::of(Reg::R10))
}

/// Whether an instruction calls `bpf_tail_call`.
pub(crate) fn is_tail_call(insn: &Insn) -> bool {
    let Insn::Call(Callee::Helper(id)) = insn else { return false };
    HelperId::TailCall.is(*id)
}
