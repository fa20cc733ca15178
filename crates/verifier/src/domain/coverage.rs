//! When one state covers another: the order of the states, in what is known to matter.

use paceline_isa::{Reg, RegSet};

use super::precision::Precision;
use super::reads::StackReads;
use super::state::{Byte, Frame, Link, Lock, PacketRange, Pointer, Scalar, Slot, State, Target, Value};

/// How closely an earlier state must cover the current one (`enum exact_level` of the kernel's `states_equal`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// In live, read and precise values only: for states all paths from which have ended.
    NotExact,
    /// All numbers within the ranges of the earlier state: for states with open paths, whose precise values are not complete.
    RangeWithin,
    /// Identical.
    Exact,
}

/// A comparison of two states: an earlier one, and one that it may cover.
pub(crate) struct Comparison<'a> {
    precision: &'a Precision,
    reads: &'a StackReads,
    exactness: Exactness,
    same_up_to: u32,
    /// Ids of the earlier state, each with its id in the current one.
    ids: Vec<(u32, u32)>,
    /// Groups of the earlier state, each with its group in the current one and the distance of their bases; `None` if the
    /// current member has no group.
    links: Vec<(u32, Option<(u32, i64)>)>,
    /// Number of values, slots and ids compared.
    steps: usize,
}

impl<'a> Comparison<'a> {
    /// A comparison in which objects with a progress count whose id is at most `same_up_to` must be identical.
    pub(crate) fn new(
        precision: &'a Precision,
        reads: &'a StackReads,
        exactness: Exactness,
        same_up_to: u32,
    ) -> Self {
        Self { precision, reads, exactness, same_up_to, ids: Vec::new(), links: Vec::new(), steps: 1 }
    }

    /// Number of values, slots and ids compared so far.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Whether an earlier state covers a later one; `live` gives the registers to compare of a frame, by its number.
    pub(crate) fn covers(&mut self, earlier: &State, now: &State, live: impl Fn(usize) -> RegSet) -> bool {
        if earlier.frames().len() != now.frames().len() || earlier.references.len() != now.references.len() {
            return false;
        }
        has_same_calls(earlier, now)
            && earlier
                .frames()
                .zip(now.frames())
                .enumerate()
                .rev()
                .all(|(i, (a, b))| self.frame(a, b, live(i)))
            && self.lock(earlier.lock, now.lock)
            && earlier.references.iter().zip(&now.references).all(|(a, b)| self.id(a.id, b.id))
    }

    fn frame(&mut self, old: &Frame, new: &Frame, live: RegSet) -> bool {
        self.rounds(old, new)
            && live.iter().filter(|&reg| reg != Reg::R10).all(|reg| self.value(&old.get(reg), &new.get(reg)))
            && self.stack(old, new)
    }

    /// Whether the earlier state had at least as many rounds left.
    fn rounds(&self, old: &Frame, new: &Frame) -> bool {
        let calls = match (old.calling_back, new.calling_back) {
            (Some(old), Some(new)) => old.rounds <= new.rounds && self.is_same(old.id, new.id),
            (old, new) => old == new,
        };
        calls && self.is_same(old.may_goto.id, new.may_goto.id)
    }

    fn is_same(&self, old: u32, new: u32) -> bool {
        old == new || old.min(new) > self.same_up_to
    }

    fn is_exact(&self) -> bool {
        self.exactness == Exactness::Exact
    }

    fn stack(&mut self, old: &Frame, new: &Frame) -> bool {
        if self.is_exact() && old.stack.slots().len() != new.stack.slots().len() {
            return false;
        }
        let slots = old.stack.slots().iter().enumerate();
        slots.into_iter().all(|(i, slot)| {
            let all = self.exactness != Exactness::NotExact;
            let read = if all { u8::MAX } else { self.reads.bytes_read(slot.origin) };
            let now = new.stack.slot(i);
            self.steps += 1;
            self.iterators(slot, &now) && (read == 0 || self.slot(slot, &now, read))
        })
    }

    fn iterators(&mut self, old_slot: &Slot, new_slot: &Slot) -> bool {
        match (old_slot.iterator(), new_slot.iterator()) {
            (Some(old), Some(new)) => {
                let (old_id, new_id) = (old.progress.id, new.progress.id);
                old.active == new.active && self.is_same(old_id, new_id) && self.id(old_id, new_id)
            }
            (old, new) => old.is_none() && new.is_none() && self.dynptrs(old_slot, new_slot),
        }
    }

    fn dynptrs(&mut self, old: &Slot, new: &Slot) -> bool {
        match (old.dynptr(), new.dynptr()) {
            (Some(old), Some(new)) => {
                old.first == new.first
                    && old.memory == new.memory
                    && self.id(old.id, new.id)
                    && (old.reference == 0) == (new.reference == 0)
                    && self.id(old.reference, new.reference)
            }
            (old, new) => old.is_none() && new.is_none(),
        }
    }

    /// Compares the bytes of a slot that were read.
    fn slot(&mut self, old: &Slot, new: &Slot, read: u8) -> bool {
        if self.is_exact() && old.bytes != new.bytes {
            return false;
        }
        for i in (0..8).filter(|i| read >> i & 1 != 0) {
            let covered = match (old.bytes[i], new.bytes[i]) {
                // Unset and data bytes both read as any number.
                (Byte::Unset | Byte::Data, _) => true,
                (Byte::Zero, Byte::Zero) => true,
                (Byte::Zero, Byte::Spilled) => new.value.is_null(),
                (Byte::Zero, _) => false,
                // Compared as a whole below.
                (Byte::Spilled | Byte::Iterator | Byte::Dynptr, _) => true,
            };
            if !covered {
                return false;
            }
        }
        let spilled = old.spilled_bytes();
        let spill_read = (0..spilled).any(|i| read >> i & 1 != 0);
        !spill_read || self.spilled(old, new, spilled)
    }

    /// Compares what is spilled in the low `bytes` of a slot.
    fn spilled(&mut self, old: &Slot, new: &Slot, bytes: usize) -> bool {
        match (&old.value, &new.value) {
            // Any bytes cover an imprecise number.
            (Value::Scalar(scalar), Value::Scalar(_) | Value::Unset) if !self.is_precise(scalar) => true,
            (old, now) => holds_spill(new.spilled_bytes(), bytes) && self.value(old, now),
        }
    }

    fn is_precise(&self, scalar: &Scalar) -> bool {
        self.exactness != Exactness::NotExact || self.precision.is_precise(scalar.mark)
    }

    fn value(&mut self, old: &Value, new: &Value) -> bool {
        self.steps += 1;
        match (old, new) {
            (Value::Unset, _) => !self.is_exact() || new.is_unset(),
            (Value::Scalar(old), Value::Scalar(new)) => self.scalar(old, new),
            (Value::Pointer(old), Value::Pointer(new)) => self.pointer(old, new),
            _ => false,
        }
    }

    fn scalar(&mut self, old: &Scalar, new: &Scalar) -> bool {
        if !self.is_precise(old) {
            return true;
        }
        let includes =
            if self.is_exact() { old.number == new.number } else { old.number.includes(&new.number) };
        includes
            && old.link.is_none_or(|link| old.number.as_constant().is_some() || self.link(link, new.link))
    }

    /// Whether members of a group in the earlier state have the same distance now. A group with one member has no
    /// constraint.
    fn link(&mut self, old: Link, new: Option<Link>) -> bool {
        self.steps += self.links.len() / 8;
        let new = new.filter(|new| new.low == old.low);
        let now = new.map(|new| (new.id, new.delta.wrapping_sub(old.delta)));
        match self.links.iter().find(|(id, _)| *id == old.id) {
            Some(&(_, known)) => known.is_some() && known == now,
            None => {
                self.links.push((old.id, now));
                true
            }
        }
    }

    fn pointer(&mut self, old: &Pointer, new: &Pointer) -> bool {
        let targets = match (old.target, new.target) {
            (Target::Packet { region: a, range: old }, Target::Packet { region: b, range: new }) => {
                a == b && if self.is_exact() { old == new } else { covers_range(old, new) }
            }
            (a, b) => a == b,
        };
        let variable =
            if self.is_exact() { old.variable == new.variable } else { old.variable.includes(&new.variable) };
        targets
            && variable
            && old.fixed == new.fixed
            && old.nullable == new.nullable
            && self.id(old.id, new.id)
    }

    fn lock(&mut self, old: Option<Lock>, new: Option<Lock>) -> bool {
        match (old, new) {
            (None, None) => true,
            (Some(old), Some(new)) => {
                old.map == new.map && (old.id == 0) == (new.id == 0) && self.id(old.id, new.id)
            }
            _ => false,
        }
    }

    /// Whether the mapping of ids from the earlier state to the current one is consistent.
    fn id(&mut self, old: u32, new: u32) -> bool {
        if old == 0 {
            return true;
        }
        self.steps += self.ids.len() / 8;
        match self.ids.iter().find(|(id, _)| *id == old) {
            Some(&(_, known)) => known == new,
            None => {
                self.ids.push((old, new));
                new != 0
            }
        }
    }
}

/// Whether the low `bytes` of a value have the same place when only these are spilled.
fn holds_spill(spilled: usize, bytes: usize) -> bool {
    spilled == bytes || cfg!(target_endian = "little") && spilled > bytes
}

/// Whether the known distance of a packet pointer to the end implies that of another.
fn covers_range(old: PacketRange, new: PacketRange) -> bool {
    match (old, new) {
        (PacketRange::Bytes(old), PacketRange::Bytes(new)) => old <= new,
        (PacketRange::Bytes(old), _) => old == 0,
        (old, new) => old == new,
    }
}

/// Whether the calls of two states, so far as both have them, are those of the same instructions.
pub(crate) fn has_same_calls(earlier: &State, now: &State) -> bool {
    earlier.frames().zip(now.frames()).all(|(a, b)| a.call_slot == b.call_slot)
}
