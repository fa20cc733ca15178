//! Checkpoints: states that were met before, and when one covers another.
//!
//! A state is covered if every run from it was, in all that matters, explored from an earlier one. What matters was
//! found out by exploring: registers that are live, stack bytes that were read, numbers that decided something
//! (see [`crate::demand`]). A checkpoint may cover others only when all paths from it have ended; one whose paths
//! have not is on the current path itself, and meeting it again without any change is an endless loop. Loops that
//! something else bounds end earlier: see [`crate::converge`].

use std::cell::Cell;

use paceline_isa::{Reg, RegSet};

use crate::cfg::Meeting;
use crate::converge::{demand, imply_zeroed, progress_between};
use crate::demand::Demands;
use crate::error::{Cause, Check, Hint};
use crate::reads::StackReads;
use crate::state::{Byte, Frame, Lock, PacketRange, Pointer, Scalar, Slot, State, Target, Value};
use crate::walk::Walk;

/// A kept state.
struct Checkpoint {
    slot: usize,
    /// `None` once it has proven useless and was dropped.
    state: Option<State>,
    /// The checkpoint before it on its path.
    parent: Option<usize>,
    /// Paths from it that have not ended.
    open_paths: u32,
    hits: u32,
    misses: u32,
    /// The last number that something had when it was kept.
    last_id: u32,
    /// The first of the checkpoints before it where a path from it has ended while that one was open.
    waits_for: Option<usize>,
}

/// All checkpoints of one walk.
pub(crate) struct Checkpoints {
    all: Vec<Checkpoint>,
    /// The checkpoints to compare with, at each slot.
    at: Vec<Vec<usize>>,
    /// The last one on the current path.
    current: Option<usize>,
    kept: usize,
    jumps_at_last: usize,
    instructions_at_last: usize,
    jumps: usize,
    /// Steps of comparing and keeping states so far (`Stats::work`).
    work: Cell<usize>,
}

impl Checkpoints {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            all: Vec::new(),
            at: vec![Vec::new(); slots],
            current: None,
            kept: 0,
            jumps_at_last: 0,
            instructions_at_last: 0,
            jumps: 0,
            work: Cell::new(0),
        }
    }

    /// Forgets all of them, for a walk from another root.
    pub(crate) fn restart(&mut self) {
        for checkpoint in self.all.drain(..) {
            if let Some(list) = self.at.get_mut(checkpoint.slot) {
                list.clear();
            }
        }
        (self.current, self.kept) = (None, 0);
        (self.jumps, self.jumps_at_last, self.instructions_at_last) = (0, 0, 0);
    }

    /// Steps of comparing and keeping states so far.
    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }

    /// Counts such steps.
    pub(crate) fn spend(&self, steps: usize) {
        self.work.set(self.work.get().saturating_add(steps));
    }

    /// A branch from the current path will wait; gives the checkpoint it hangs on.
    pub(crate) fn branch(&mut self) -> Option<usize> {
        if let Some(checkpoint) = self.current.and_then(|index| self.all.get_mut(index)) {
            checkpoint.open_paths += 1;
        }
        self.current
    }

    /// The current path has ended.
    pub(crate) fn path_ends(&mut self) {
        let mut at = self.current;
        while let Some(checkpoint) = at.and_then(|index| self.all.get_mut(index)) {
            checkpoint.open_paths = checkpoint.open_paths.saturating_sub(1);
            if checkpoint.open_paths > 0 {
                break;
            }
            at = checkpoint.parent;
        }
    }

    /// Goes on with a branch that hangs on a checkpoint.
    pub(crate) fn resume(&mut self, checkpoint: Option<usize>) {
        self.current = checkpoint;
    }

    /// A checkpoint on the current path from which what mattered of this one may still have to be found out, if there
    /// is one.
    fn unsettled_by(&self, index: usize) -> Option<usize> {
        let mut at = Some(index);
        while let Some((index, checkpoint)) = at.and_then(|index| Some((index, self.all.get(index)?))) {
            self.spend(1);
            if checkpoint.open_paths > 0 {
                return Some(index);
            }
            at = checkpoint.waits_for;
        }
        None
    }

    /// The current path ends before all is known of `target`, an open checkpoint: nor is it then of those in between.
    fn wait_for(&mut self, target: usize) {
        let mut at = self.current;
        while let Some(index) = at.filter(|&index| index > target)
            && let Some(checkpoint) = self.all.get_mut(index)
        {
            *self.work.get_mut() += 1;
            if checkpoint.waits_for.is_none_or(|known| known > target) {
                checkpoint.waits_for = Some(target);
            }
            at = checkpoint.parent;
        }
    }

    /// The states kept last at a slot on the current path, the current checkpoint aside if it was `just_kept`.
    pub(crate) fn open_at(&self, slot: usize, just_kept: bool) -> impl Iterator<Item = &State> {
        let skip = self.current.filter(|_| just_kept);
        let list = self.at.get(slot).map_or(&[][..], Vec::as_slice);
        let open = list.iter().rev().filter(move |&&index| Some(index) != skip);
        open.filter_map(|&index| self.all.get(index))
            .inspect(|_| self.spend(1))
            .filter(|checkpoint| checkpoint.open_paths > 0)
            .filter_map(|checkpoint| checkpoint.state.as_ref())
    }

    fn add(&mut self, slot: usize, state: State, last_id: u32) {
        let checkpoint = Checkpoint {
            slot,
            state: Some(state),
            parent: self.current,
            open_paths: 1,
            hits: 0,
            misses: 0,
            last_id,
            waits_for: None,
        };
        let index = self.all.len();
        self.all.push(checkpoint);
        self.kept += 1;
        if let Some(list) = self.at.get_mut(slot) {
            list.push(index);
        }
        self.current = Some(index);
    }
}

/// What comparing with the checkpoints of a slot found.
enum Found {
    Covered(usize),
    Loop,
    Nothing { looping: bool },
}

impl Walk<'_> {
    /// Compares the state with those met at this slot, and maybe keeps it. True if the path may end here.
    pub(crate) fn meets_earlier_state(&mut self) -> Check<bool> {
        let slot = self.slot;
        let meeting = self.flow.meetings.get(slot).copied().unwrap_or_default();
        if meeting == Meeting::Never {
            return Ok(false);
        }
        let is_round = meeting == Meeting::Round;
        if is_round {
            self.start_calling_back();
        }
        self.checkpoints.jumps += 1;
        match self.look_for_earlier(slot, is_round) {
            Found::Covered(index) => {
                match self.checkpoints.unsettled_by(index) {
                    None => self.inherit_demands(index),
                    Some(open) => {
                        self.share_demands(index);
                        self.checkpoints.wait_for(open);
                    }
                }
                self.checkpoints.spend(self.state.frames().map(Frame::places).sum());
                self.stats.pruned += 1;
                Ok(true)
            }
            Found::Loop => crate::error::broken_with(Cause::InfiniteLoop, Hint::BoundLoop),
            Found::Nothing { looping } => {
                if is_round || self.is_worth_keeping(looping) {
                    self.keep(slot)?;
                }
                Ok(false)
            }
        }
    }

    /// States are kept at some distance from each other (the kernel's `is_state_visited` has the same distances).
    fn is_worth_keeping(&self, looping: bool) -> bool {
        let jumps = self.checkpoints.jumps - self.checkpoints.jumps_at_last;
        let instructions = self.stats.instructions - self.checkpoints.instructions_at_last;
        if looping { jumps >= 20 || instructions >= 100 } else { jumps >= 2 && instructions >= 8 }
    }

    fn look_for_earlier(&mut self, slot: usize, is_round: bool) -> Found {
        let mut list = std::mem::take(&mut self.checkpoints.at[slot]);
        let mut found = Found::Nothing { looping: false };
        let mut finds_useless = false;
        // The latest ones are most alike.
        for &index in list.iter().rev() {
            let checkpoint = &self.checkpoints.all[index];
            let Some(state) = &checkpoint.state else { continue };
            if checkpoint.open_paths > 0 {
                let oldest = if self.flow.has_rounds { progress_between(state, &self.state) } else { None };
                let ends = match oldest {
                    None => self.compare(state, Rigor::Same, 0).then_some(Found::Loop),
                    Some(id) => (is_round && self.compare(state, self.rigor(Rigor::All), id))
                        .then_some(Found::Covered(index)),
                };
                if let Some(end) = ends {
                    found = end;
                    break;
                }
                found = Found::Nothing { looping: true };
            } else {
                let unsettled_by = self.checkpoints.unsettled_by(index);
                let rigor = self.rigor(unsettled_by.map_or(Rigor::Demanded, |_| Rigor::All));
                let same_up_to = unsettled_by.map_or(0, |open| self.checkpoints.all[open].last_id);
                if self.compare(state, rigor, same_up_to) {
                    found = Found::Covered(index);
                    self.checkpoints.all[index].hits += 1;
                    break;
                }
            }
            let checkpoint = &mut self.checkpoints.all[index];
            checkpoint.misses += 1;
            if checkpoint.misses > checkpoint.hits * 3 + 3
                && (checkpoint.open_paths == 0 || checkpoint.misses > 64)
            {
                let state = checkpoint.state.take();
                self.held = self.held.saturating_sub(state.map_or(0, |state| state.bytes()));
                self.checkpoints.kept -= 1;
                finds_useless = true;
            }
        }
        if finds_useless {
            list.retain(|&index| self.checkpoints.all[index].state.is_some());
        }
        self.checkpoints.at[slot] = list;
        found
    }

    fn rigor(&self, wanted: Rigor) -> Rigor {
        if self.options.exact { Rigor::Same } else { wanted }
    }

    /// Whether the current state is covered by an earlier one of the same slot. What makes progress and has an id
    /// up to `same_up_to` must be the very same.
    fn compare(&self, earlier: &State, rigor: Rigor, same_up_to: u32) -> bool {
        let (demands, reads) = (&self.demands, &self.reads);
        let mut comparison = Comparison { demands, reads, rigor, same_up_to, ids: Vec::new(), steps: 1 };
        let is_covered = self.compare_with(&mut comparison, earlier);
        self.checkpoints.spend(comparison.steps);
        is_covered
    }

    fn compare_with(&self, comparison: &mut Comparison<'_>, earlier: &State) -> bool {
        let now = &self.state;
        if earlier.frames().len() != now.frames().len() || earlier.references.len() != now.references.len() {
            return false;
        }
        let last = now.depth();
        let calls_match = earlier.frames().zip(now.frames()).all(|(a, b)| a.call_slot == b.call_slot);
        calls_match
            && earlier.frames().zip(now.frames()).enumerate().rev().all(|(i, (a, b))| {
                let slot = if i == last { Some(self.slot) } else { now.frame(i + 1).map(Frame::return_slot) };
                // An exact walk answers for registers that nobody reads any more as well.
                let live = slot.filter(|_| !self.options.exact).map(|slot| self.live_at(slot));
                let all = RegSet::CALLER_SAVED.union(RegSet::CALLEE_SAVED);
                let rest = if self.options.exact { all } else { RegSet::EMPTY };
                comparison.frame(a, b, live.unwrap_or(rest))
            })
            && comparison.lock(earlier.lock, now.lock)
            && earlier.references.iter().zip(&now.references).all(|(a, b)| comparison.id(a.id, b.id))
    }

    fn live_at(&self, slot: usize) -> RegSet {
        self.flow.live.get(slot).copied().unwrap_or_default()
    }

    /// Keeps the state: from here on, what is demanded of it is noted with it.
    fn keep(&mut self, slot: usize) -> Check {
        let (demands, reads) = (&mut self.demands, &mut self.reads);
        for number in 0..=self.state.depth() {
            let Some(frame) = self.state.frame_mut(number) else { continue };
            for value in frame.values_mut() {
                if let Value::Scalar(scalar) = value {
                    scalar.mark = demands.checkpoint(scalar.mark);
                }
            }
            for slot in frame.stack.slots_mut() {
                slot.origin = reads.checkpoint(slot.origin, !slot.fresh);
                slot.fresh = 0;
            }
        }
        self.checkpoints.spend(self.state.frames().map(Frame::places).sum());
        self.checkpoints.add(slot, self.state.clone(), self.last_id());
        self.checkpoints.jumps_at_last = self.checkpoints.jumps;
        self.checkpoints.instructions_at_last = self.stats.instructions;
        self.stats.states += 1;
        self.stats.peak_states = self.stats.peak_states.max(self.checkpoints.kept);
        self.hold(self.state.bytes())
    }

    fn share_demands(&mut self, index: usize) {
        // Taken out and put back, since sharing changes what is next to it.
        let Some(earlier) = self.checkpoints.all.get_mut(index).and_then(|c| c.state.take()) else { return };
        self.share_demands_with(&earlier);
        self.checkpoints.all[index].state = Some(earlier);
    }

    /// What mattered of the covering state matters of the covered one too, for the checkpoints on its path.
    fn inherit_demands(&mut self, index: usize) {
        let Some(earlier) = self.checkpoints.all.get(index).and_then(|c| c.state.as_ref()) else { return };
        let (demands, reads) = (&mut self.demands, &mut self.reads);
        for (old, new) in earlier.frames().zip(self.state.frames()) {
            imply_zeroed(reads, old, new);
            for (old, new) in old.registers().iter().zip(new.registers()) {
                inherit(demands, old, new);
            }
            for (old, new) in old.stack.slots().iter().zip(new.stack.slots()) {
                reads.inherit(old.origin, new.origin, !new.fresh);
                if reads.bytes_read(old.origin) != 0 {
                    inherit(demands, &old.value, &new.value);
                }
                if old.zeros_of_value(new) & reads.bytes_read(old.origin) != 0 {
                    demand(demands, &new.value);
                }
            }
        }
    }
}

fn inherit(demands: &mut Demands, old: &Value, new: &Value) {
    if let (Value::Scalar(old), Value::Scalar(new)) = (old, new)
        && demands.is_demanded(old.mark)
    {
        demands.demand(new.mark);
    }
}

/// What an earlier state must cover another one in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rigor {
    /// In what has turned out to matter: for states from which all is known.
    Demanded,
    /// In all that may matter: for those from which more may turn out to.
    All,
    /// In nothing: it must be the same.
    Same,
}

/// A comparison of two states: an earlier one, and one that it may cover.
struct Comparison<'a> {
    demands: &'a Demands,
    reads: &'a StackReads,
    rigor: Rigor,
    same_up_to: u32,
    /// Ids of the earlier state, and which they are now.
    ids: Vec<(u32, u32)>,
    /// Values, slots and ids looked at.
    steps: usize,
}

impl Comparison<'_> {
    fn frame(&mut self, old: &Frame, new: &Frame, live: RegSet) -> bool {
        self.rounds(old, new)
            && live.iter().filter(|&reg| reg != Reg::R10).all(|reg| self.value(&old.get(reg), &new.get(reg)))
            && self.stack(old, new)
    }

    /// Whether from the earlier state at least as many rounds were left.
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
        self.rigor == Rigor::Same
    }

    fn stack(&mut self, old: &Frame, new: &Frame) -> bool {
        if self.is_exact() && old.stack.slots().len() != new.stack.slots().len() {
            return false;
        }
        let slots = old.stack.slots().iter().enumerate();
        slots.into_iter().all(|(i, slot)| {
            let all = self.rigor != Rigor::Demanded;
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
            (Some(old), Some(new)) => old.first == new.first && self.id(old.id, new.id),
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
                // Such bytes are read as any number.
                (Byte::Unset | Byte::Data, _) => true,
                (Byte::Zero, Byte::Zero) => true,
                (Byte::Zero, Byte::Spilled) => new.value.is_null(),
                (Byte::Zero, _) => false,
                // Compared as a whole.
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

    fn spilled(&mut self, old: &Slot, new: &Slot, bytes: usize) -> bool {
        match (&old.value, &new.value) {
            (_, value) if !value.is_unset() => {
                new.spilled_bytes() == bytes && self.value(&old.value, &new.value)
            }
            // Plain data is read as any number.
            (Value::Scalar(scalar), _) => !self.is_precise(scalar),
            _ => false,
        }
    }

    fn is_precise(&self, scalar: &Scalar) -> bool {
        self.rigor != Rigor::Demanded || self.demands.is_demanded(scalar.mark)
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
            && match (old.link, new.link) {
                (None, _) => true,
                // A lone member of a group tells nothing.
                (Some(_), _) if old.number.as_constant().is_some() => true,
                (Some(a), Some(b)) => a.delta == b.delta && a.low == b.low && self.id(a.id, b.id),
                (Some(a), None) => self.lone_id(a.id),
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

    /// Whether ids of the earlier state stand for the same ids throughout.
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

    /// An id of the earlier state that has no counterpart: fine as long as nothing else has it.
    fn lone_id(&mut self, old: u32) -> bool {
        let is_new = self.ids.iter().all(|(id, _)| *id != old);
        self.ids.push((old, 0));
        is_new
    }
}

/// Whether what is known of a packet pointer's distance to the end holds for another as well.
fn covers_range(old: PacketRange, new: PacketRange) -> bool {
    match (old, new) {
        (PacketRange::Bytes(old), PacketRange::Bytes(new)) => old <= new,
        (PacketRange::Bytes(old), _) => old == 0,
        (old, new) => old == new,
    }
}
