//! The scan: virtual registers in the order in which they begin to be, each to a register that is free for as long as it is live.
//!
//! If none is, it gets the one that is free for longest, or that of others that cost less; whoever loses a register is in its slot from
//! there on, and its later uses are scanned on their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::allocations::{Allocations, Holder};
use super::assignments::{Assigned, Assignment};
use super::hints::Hints;
use super::live_ranges::LiveRanges;
use super::point::Point;
use super::spill_slots;
use super::uses::Uses;
use super::weights::weights;
use crate::codegen::lir::{Function, Reg, RegSet};
use crate::codegen::reuse::filled;

/// How many segments of what comes later and would best have the same register are looked at: a register that is free in these is likely
/// free in others.
const FORESEEN: usize = 16;

/// What is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A virtual register, from its definition.
    Whole(u32),
    /// An operand that reads a virtual register which is in its slot.
    Operand(u32),
}

pub(super) struct Scan<'a, O> {
    function: &'a Function<O>,
    ranges: &'a LiveRanges,
    registers: RegSet,
    /// By register.
    held: &'a mut [Allocations],
    hints: &'a mut Hints,
    /// The first of the virtual registers, in their order, that is not scanned yet.
    next: usize,
    /// Operands that read registers which are in their slots.
    queue: BinaryHeap<Reverse<(Point, Item)>>,
    /// The uses of virtual registers, once one is split.
    uses: Option<Uses>,
    /// Spill weights, computed when a function first runs out of registers.
    weights: Option<Vec<f32>>,
    assigned: &'a mut Assigned,
}

/// The registers, those first that would save moves. Each comes once.
struct Preferred {
    saving: [Option<Reg>; 3],
    at: usize,
    others: RegSet,
}

impl Iterator for Preferred {
    type Item = Reg;

    #[inline]
    fn next(&mut self) -> Option<Reg> {
        while let Some(reg) = self.saving.get(self.at) {
            self.at += 1;
            // A register that cannot hold values saves no move.
            if let Some(reg) = reg.filter(|reg| self.others.has(*reg)) {
                self.others = self.others.without(reg);
                return Some(reg);
            }
        }
        let first = self.others.first()?;
        self.others = self.others.without(first);
        Some(first)
    }
}

impl<'a, O> Scan<'a, O> {
    /// The scan of a function whose instructions hold registers.
    pub(super) fn new(
        function: &'a Function<O>,
        ranges: &'a LiveRanges,
        held: &'a mut [Allocations],
        hints: &'a mut Hints,
        assigned: &'a mut Assigned,
        registers: RegSet,
    ) -> Self {
        filled(&mut assigned.assignments, Assignment::NONE, ranges.vregs.len());
        (assigned.spill_slots, assigned.loaded) = (0, Vec::new());
        Self {
            function,
            ranges,
            registers,
            held,
            hints,
            next: 0,
            queue: BinaryHeap::new(),
            uses: None,
            weights: None,
            assigned,
        }
    }

    /// Assigns all. The error is the instruction that needs too many registers.
    #[inline(never)]
    pub(super) fn run(mut self) -> Result<(), u32> {
        while let Some((start, item)) = self.next() {
            match item {
                Item::Whole(vreg) => self.whole(vreg)?,
                Item::Operand(operand) => self.operand(operand, start)?,
            }
        }
        if self.uses.is_some() {
            self.assigned.spill_slots = spill_slots::assign(self.ranges, &mut self.assigned.assignments);
        }
        Ok(())
    }

    /// The next item of the scan.
    #[inline]
    fn next(&mut self) -> Option<(Point, Item)> {
        let whole = self.ranges.order.get(self.next).map(|(start, vreg)| (*start, Item::Whole(*vreg)));
        match (whole, self.queue.peek()) {
            (Some(whole), Some(Reverse(operand))) if *operand < whole => {
                self.queue.pop().map(|Reverse(next)| next)
            }
            (Some(whole), _) => {
                self.next += 1;
                Some(whole)
            }
            (None, _) => self.queue.pop().map(|Reverse(next)| next),
        }
    }

    /// The first point of some segments at which somebody else has a register.
    #[inline]
    fn conflict(&mut self, reg: Reg, segments: &[Range<Point>]) -> Option<Point> {
        self.held[usize::from(reg.0)].conflict_from(segments)
    }

    fn whole(&mut self, vreg: u32) -> Result<(), u32> {
        let range = &self.ranges.vregs[vreg as usize];
        let (segments, fixed) = (self.ranges.segments(range), range.fixed);
        // A virtual register with a later start, whose register a move would save, may need another one.
        let assignments = &self.assigned.assignments;
        let hint = self.hints.first(vreg);
        let given = hint.and_then(|hint| assignments[hint as usize].reg);
        let later = match hint {
            Some(hint) if given.is_none() => self.ranges.segments_of(hint),
            _ => &[],
        };
        let later = &later[..later.len().min(FORESEEN)];
        // The registers from best to worst, each with the point up to which it is free.
        let mut best: Option<(Reg, Point)> = None;
        let mut free = None;
        let group = self.hints.group(vreg);
        let of_hint = given.or_else(|| self.ranges.vregs[hint? as usize].fixed);
        let saving = [fixed, of_hint, *self.hints.shared(group)];
        for reg in self.preferred(saving) {
            match self.conflict(reg, segments) {
                // The scan stays where it is for this.
                None if later.is_empty()
                    || fixed == Some(reg)
                    || self.held[usize::from(reg.0)].conflict(later).is_none() =>
                {
                    self.give(vreg, group, reg, Point::MAX);
                    return Ok(());
                }
                None => {
                    free.get_or_insert(reg);
                }
                Some(until) if best.is_none_or(|(_, known)| known < until) => best = Some((reg, until)),
                Some(_) => {}
            }
        }
        match free {
            Some(reg) => {
                self.give(vreg, group, reg, Point::MAX);
                Ok(())
            }
            None => self.for_a_while(vreg, group, best),
        }
    }

    /// Gives a virtual register one for a part of where it is live, when none is free for all of it: the one that is free for longest, or
    /// that of others.
    #[inline(never)]
    fn for_a_while(&mut self, vreg: u32, group: usize, best: Option<(Reg, Point)>) -> Result<(), u32> {
        let (segments, range) = (self.ranges.segments_of(vreg), &self.ranges.vregs[vreg as usize]);
        let (start, needed) = (range.start, range.needed);
        let evictable = self.evictable(start, needed.max(start + 1));
        let best = best.filter(|(_, until)| *until >= needed && *until > start);
        let (reg, until) = match (best, evictable) {
            // A register that is free for a while is taken, unless others cost less per point than what is left of this.
            (Some((reg, until)), evictable)
                if evictable.is_none_or(|(_, weight)| weight >= self.weight(vreg)) =>
            {
                (reg, until)
            }
            (_, Some((reg, weight))) if needed > start || weight < self.weight(vreg) => {
                self.evict(reg, start..needed.max(start + 1));
                // default: without a conflict it is for all of where it is live.
                (reg, self.conflict(reg, segments).unwrap_or(Point::MAX))
            }
            (Some(best), _) => best,
            _ if needed == start => {
                self.split(vreg, start);
                return Ok(());
            }
            _ => return Err(start / 4),
        };
        self.give(vreg, group, reg, until);
        Ok(())
    }

    /// Loads an operand to a register before its instruction.
    #[inline(never)]
    fn operand(&mut self, operand: u32, start: Point) -> Result<(), u32> {
        let segment = start..start + 1;
        let vreg = self.function.operands[operand as usize].vreg.0;
        let group = self.hints.group(vreg);
        let fixed_or = |vreg: u32| self.ranges.vregs[vreg as usize].fixed;
        let hint = self.hints.first(vreg);
        let of_hint = hint.and_then(|hint| self.assigned.assignments[hint as usize].reg.or(fixed_or(hint)));
        let saving = [fixed_or(vreg), of_hint, *self.hints.shared(group)];
        let free =
            self.preferred(saving).find(|reg| self.conflict(*reg, std::slice::from_ref(&segment)).is_none());
        let reg = match free {
            Some(reg) => reg,
            None => {
                let (reg, _) = self.evictable(start, start + 1).ok_or(start / 4)?;
                self.evict(reg, segment.clone());
                reg
            }
        };
        self.held[usize::from(reg.0)].give(segment, Holder::Operand);
        self.assigned.loaded.resize(self.function.operands.len(), None);
        self.assigned.loaded[operand as usize] = Some(reg);
        Ok(())
    }

    /// The registers, those first that would save moves.
    #[inline]
    const fn preferred(&self, saving: [Option<Reg>; 3]) -> Preferred {
        Preferred { saving, at: 0, others: self.registers }
    }

    /// What it costs to be in a slot, per point in a register.
    fn weight(&self, vreg: u32) -> f32 {
        self.weights.as_ref().map_or(0.0, |weights| weights[vreg as usize])
    }

    /// The register whose holders within some points can all lose it, and cost least; with the greatest of their weights.
    fn evictable(&mut self, start: Point, end: Point) -> Option<(Reg, f32)> {
        let (function, ranges, held) = (self.function, self.ranges, &*self.held);
        let weights = self.weights.get_or_insert_with(|| weights(function, ranges));
        let weight = |reg: Reg| {
            let mut weight = 0_f32;
            for holder in held[usize::from(reg.0)].within(start..end) {
                match holder {
                    // A definition needs its register until it is written.
                    Holder::Whole(vreg) if ranges.vregs[vreg as usize].needed <= start => {
                        weight = weight.max(weights[vreg as usize]);
                    }
                    _ => return None,
                }
            }
            Some((reg, weight))
        };
        self.registers.iter().filter_map(weight).min_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    fn evict(&mut self, reg: Reg, points: Range<Point>) {
        let losing: Vec<Holder> = self.held[usize::from(reg.0)].within(points.clone()).collect();
        for holder in losing {
            if let Holder::Whole(vreg) = holder {
                self.split(vreg, points.start);
            }
        }
    }

    /// Gives a register up to a point.
    fn give(&mut self, vreg: u32, group: usize, reg: Reg, until: Point) {
        let segments = self.ranges.segments_of(vreg);
        let held = &mut self.held[usize::from(reg.0)];
        for segment in segments.iter().take_while(|segment| segment.start < until) {
            held.give(segment.start..segment.end.min(until), Holder::Whole(vreg));
        }
        self.assigned.assignments[vreg as usize].reg = Some(reg);
        *self.hints.shared(group) = Some(reg);
        if until != Point::MAX {
            self.split(vreg, until);
        }
    }

    /// From a point on, the virtual register is in its slot.
    fn split(&mut self, vreg: u32, at: Point) {
        let assignment = &mut self.assigned.assignments[vreg as usize];
        let before = std::mem::replace(&mut assignment.split, at);
        debug_assert!(before == Point::MAX || at < before, "a split range holds nothing behind the split");
        if let Some(reg) = assignment.reg {
            self.held[usize::from(reg.0)].take(vreg, at, self.ranges.segments_of(vreg));
        }
        let function = self.function;
        for used in self.uses.get_or_insert_with(|| Uses::of(function)).by(vreg, function) {
            let was_split = before != Point::MAX && used.early + 1 > before;
            if used.early + 1 > at && !was_split && used.needs_register {
                self.queue.push(Reverse((used.early, Item::Operand(used.operand))));
            }
        }
    }
}
