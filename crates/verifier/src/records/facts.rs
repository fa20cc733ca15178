//! Facts for the compilers, while they are gathered.

use crate::domain::state::{MAX_STACK, MapRef, PacketRange, Pointer, Target};
use crate::facts::{Base, CallbackFact, InsnFact, KeyFact, MapFact, MemoryFact, StackFact};

/// Facts while they are gathered.
#[derive(Debug)]
pub(crate) struct Facts {
    insns: Vec<InsnFact>,
    functions: Vec<Seen>,
}

/// What was seen of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Deepest stack use, in bytes.
    pub(crate) stack: u32,
    /// Whether it is a callback.
    pub(crate) is_callback: bool,
    /// Whether it prints memory at addresses.
    pub(crate) prints: bool,
    /// Words of its stack that other functions read (`FunctionFact::shared`).
    pub(crate) shared: u64,
}

impl Facts {
    pub(super) fn new(slots: usize, functions: usize) -> Self {
        Self { insns: vec![InsnFact::default(); slots], functions: vec![Seen::default(); functions] }
    }

    /// What was seen of a function, by its index.
    pub(crate) fn function(&self, index: usize) -> Seen {
        self.functions[index]
    }

    /// The same, to add to it.
    pub(crate) fn function_mut(&mut self, index: usize) -> &mut Seen {
        &mut self.functions[index]
    }

    pub(crate) fn into_insns(self) -> Vec<InsnFact> {
        self.insns
    }

    fn change(&mut self, slot: usize, change: impl FnOnce(&mut InsnFact)) {
        change(&mut self.insns[slot]);
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
                Target::Packet { range: PacketRange::Bytes(bytes), .. } => Some(bytes),
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
        // A program has at most a million instructions.
        let start = start as u32;
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
