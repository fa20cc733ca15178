//! The scan: virtual registers in the order in which they begin to be, each to a register that is free for as long as it is live.
//!
//! If none is, it gets the one that is free for longest, or that of others that cost less; whoever loses a register is in its slot from
//! there on, and its later uses are scanned on their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::held::{Held, Holder};
use super::ranges::{AFTER, EARLY, LATE, Point, Ranges, point};
use super::slots;
use crate::lir::{Function, Place, Reg, RegSet, Role, Vreg};

/// How many segments of what comes later and would best have the same register are looked at: a register that is free in these is likely
/// free in others.
const FORESEEN: usize = 16;

/// Where virtual registers are, and the registers of operands.
pub(super) struct Assigned {
    /// By virtual register: its register, as long as it has one.
    pub(super) homes: Vec<Option<Reg>>,
    /// By virtual register: the point from which it is in its slot.
    pub(super) cuts: Vec<Point>,
    /// By virtual register: its slot, if it is cut.
    pub(super) slots: Vec<Option<u32>>,
    pub(super) slot_count: u32,
    /// By operand: the register that its value is loaded to before the instruction, if that is not its home.
    pub(super) loaded: Vec<Option<Reg>>,
}

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
    ranges: &'a Ranges,
    registers: RegSet,
    /// By register.
    held: Vec<Held>,
    /// The first of the virtual registers, in their order, that is not scanned yet.
    next: usize,
    /// Operands that read registers which are in their slots.
    queue: BinaryHeap<Reverse<(Point, Item)>>,
    assigned: Assigned,
    /// By virtual register: the registers that moves would save, best first; from its hint, fixed operands and arguments.
    hints: Vec<[Option<Reg>; 2]>,
    /// By virtual register: its cost per point.
    weights: Vec<f32>,
    /// By virtual register: others that it would best have the register of, parameters and arguments.
    friends: Vec<Option<u32>>,
    /// By virtual register: one on the way to the first of those that are friends, and friends of friends.
    groups: Vec<u32>,
    /// By the first of a group: the register that the last of them got, or will need.
    shared: Vec<Option<Reg>>,
}

impl<'a, O> Scan<'a, O> {
    pub(super) fn new(function: &'a Function<O>, ranges: &'a Ranges, registers: RegSet) -> Self {
        let count = function.hints.len();
        let assigned = Assigned {
            homes: vec![None; count],
            cuts: vec![Point::MAX; count],
            slots: Vec::new(),
            slot_count: 0,
            loaded: vec![None; function.operands.len()],
        };
        let mut scan = Self {
            function,
            ranges,
            registers,
            held: vec![Held::default(); 32],
            next: 0,
            queue: BinaryHeap::new(),
            assigned,
            hints: function.hints.iter().map(|hint| [*hint, None]).collect(),
            weights: Vec::with_capacity(count),
            friends: vec![None; count],
            groups: (0..count as u32).collect(),
            shared: vec![None; count],
        };
        for range in &ranges.vregs {
            let segments = &ranges.segments[range.segments.start as usize..range.segments.end as usize];
            let length: Point = segments.iter().map(|segment| segment.end - segment.start).sum();
            scan.weights.push(range.cost / length.max(1) as f32);
        }
        scan.constraints();
        scan.befriend();
        scan
    }

    /// Takes registers for fixed operands and clobbers.
    fn constraints(&mut self) {
        for (number, inst) in (0..).zip(&self.function.insts) {
            let late = point(number, LATE)..point(number, AFTER);
            for operand in self.function.operands_of(inst) {
                if let Place::Fixed(reg) = operand.place {
                    let points = match operand.role {
                        Role::Use => point(number, EARLY)..late.start,
                        Role::Def => late.clone(),
                    };
                    self.held[usize::from(reg.0)].fix(points);
                    self.hints[operand.vreg.0 as usize][1].get_or_insert(reg);
                }
            }
            inst.clobbers.iter().for_each(|reg| self.held[usize::from(reg.0)].fix(late.clone()));
        }
    }

    /// Parameters and arguments, and definitions and uses of which they take the register, would best have the same one.
    fn befriend(&mut self) {
        let function = self.function;
        let mut befriend = |a: Vreg, b: Vreg| {
            self.friends[a.0 as usize].get_or_insert(b.0);
            self.friends[b.0 as usize].get_or_insert(a.0);
            let (a, b) = (first_of(&mut self.groups, a.0), first_of(&mut self.groups, b.0));
            self.groups[a.max(b) as usize] = a.min(b);
        };
        for target in &function.targets {
            let params = function.params_of(&function.blocks[target.block as usize]);
            params.iter().zip(function.args_of(target)).for_each(|(param, arg)| befriend(*param, *arg));
        }
        for inst in &function.insts {
            let operands = function.operands_of(inst);
            for operand in operands {
                if let Place::Same(at) = operand.place
                    && let Some(taken) = operands.get(usize::from(at))
                {
                    befriend(operand.vreg, taken.vreg);
                }
            }
        }
        for vreg in 0..self.groups.len() {
            if let Some(reg) = self.hints[vreg][1] {
                let first = first_of(&mut self.groups, vreg as u32);
                self.shared[first as usize].get_or_insert(reg);
            }
        }
    }

    /// Assigns all. The error is the instruction that needs too many registers.
    pub(super) fn run(mut self) -> Result<Assigned, u32> {
        while let Some((start, item)) = self.next() {
            match item {
                Item::Whole(vreg) => self.whole(vreg)?,
                Item::Operand(operand) => self.operand(operand, start)?,
            }
        }
        (self.assigned.slots, self.assigned.slot_count) = slots::assign(self.ranges, &self.assigned.cuts);
        Ok(self.assigned)
    }

    /// The next item of the scan.
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

    /// The segments of a virtual register.
    fn segments(&self, vreg: u32) -> &'a [Range<Point>] {
        let Range { start, end } = self.ranges.vregs[vreg as usize].segments.clone();
        &self.ranges.segments[start as usize..end as usize]
    }

    /// The first point of some segments at which somebody else has a register.
    fn conflict(&mut self, reg: Reg, segments: &[Range<Point>]) -> Option<Point> {
        let held = &mut self.held[usize::from(reg.0)];
        held.advance(segments.first().map_or(0, |first| first.start));
        held.conflict(segments)
    }

    fn hold(&mut self, reg: Reg, segments: &[Range<Point>], until: Point, holder: Holder) {
        let held = &mut self.held[usize::from(reg.0)];
        for segment in segments.iter().filter(|segment| segment.start < until) {
            held.give(segment.start..segment.end.min(until), holder);
        }
    }

    fn whole(&mut self, vreg: u32) -> Result<(), u32> {
        let range = &self.ranges.vregs[vreg as usize];
        let (segments, start, needed) = (self.segments(vreg), range.start, range.needed);
        // A virtual register with a later start, whose register a move would save, may need another one.
        let homes = &self.assigned.homes;
        let friend = self.friends[vreg as usize].filter(|friend| homes[*friend as usize].is_none());
        let later = friend.map_or(&[][..], |friend| self.segments(friend));
        let later = &later[..later.len().min(FORESEEN)];
        let [_, fixed] = self.hints[vreg as usize];
        // The registers from best to worst, each with the point up to which it is free.
        let mut best: Option<(Reg, Point)> = None;
        let mut free = None;
        for reg in self.preferred(vreg) {
            match self.conflict(reg, segments) {
                // The scan stays where it is for this.
                None if later.is_empty()
                    || fixed == Some(reg)
                    || self.held[usize::from(reg.0)].conflict(later).is_none() =>
                {
                    self.give(vreg, reg, Point::MAX);
                    return Ok(());
                }
                None => {
                    free.get_or_insert(reg);
                }
                Some(until) if best.is_none_or(|(_, known)| known < until) => best = Some((reg, until)),
                Some(_) => {}
            }
        }
        if let Some(reg) = free {
            self.give(vreg, reg, Point::MAX);
            return Ok(());
        }
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
                (reg, self.conflict(reg, segments).unwrap_or(Point::MAX))
            }
            (Some(best), _) => best,
            _ if needed == start => {
                self.cut(vreg, start);
                return Ok(());
            }
            _ => return Err(start / 4),
        };
        self.give(vreg, reg, until);
        Ok(())
    }

    /// Loads an operand to a register before its instruction.
    fn operand(&mut self, operand: u32, start: Point) -> Result<(), u32> {
        let segment = start..start + 1;
        let vreg = self.function.operands[operand as usize].vreg.0;
        let mut preferred = self.preferred(vreg);
        let free = preferred.find(|reg| self.conflict(*reg, std::slice::from_ref(&segment)).is_none());
        let reg = match free {
            Some(reg) => reg,
            None => {
                let (reg, _) = self.evictable(start, start + 1).ok_or(start / 4)?;
                self.evict(reg, segment.clone());
                reg
            }
        };
        self.held[usize::from(reg.0)].give(segment, Holder::Operand);
        self.assigned.loaded[operand as usize] = Some(reg);
        Ok(())
    }

    /// The registers, those first that would save moves.
    fn preferred(&mut self, vreg: u32) -> impl Iterator<Item = Reg> + use<O> {
        let of_group = self.shared[first_of(&mut self.groups, vreg) as usize];
        let friend = self.friends[vreg as usize];
        let of_friend =
            friend.and_then(|friend| self.assigned.homes[friend as usize].or(self.hints[friend as usize][1]));
        let [hint, fixed] = self.hints[vreg as usize];
        // Hints that are no registers for values are none, and each register comes once.
        let (mut hints, mut rest) = ([None; 4], self.registers);
        for (place, hint) in hints.iter_mut().zip([fixed, of_friend, of_group, hint]) {
            *place = hint.filter(|reg| rest.has(*reg));
            rest = place.map_or(rest, |reg| rest.without(reg));
        }
        hints.into_iter().flatten().chain(rest.iter())
    }

    /// What it costs to be in a slot, per point in a register.
    fn weight(&self, vreg: u32) -> f32 {
        self.weights[vreg as usize]
    }

    /// The register whose holders within some points can all lose it, and cost least; with the greatest of their weights.
    fn evictable(&self, start: Point, end: Point) -> Option<(Reg, f32)> {
        let weight = |reg: Reg| {
            let mut weight = 0_f32;
            for holder in self.held[usize::from(reg.0)].within(start..end) {
                match holder {
                    // A definition needs its register until it is written.
                    Holder::Whole(vreg) if self.ranges.vregs[vreg as usize].needed <= start => {
                        weight = weight.max(self.weight(vreg));
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
                self.cut(vreg, points.start);
            }
        }
    }

    /// Gives a register up to a point.
    fn give(&mut self, vreg: u32, reg: Reg, until: Point) {
        self.hold(reg, self.segments(vreg), until, Holder::Whole(vreg));
        self.assigned.homes[vreg as usize] = Some(reg);
        let first = first_of(&mut self.groups, vreg);
        self.shared[first as usize] = Some(reg);
        if until != Point::MAX {
            self.cut(vreg, until);
        }
    }

    /// From a point on, the virtual register is in its slot.
    fn cut(&mut self, vreg: u32, at: Point) {
        let before = std::mem::replace(&mut self.assigned.cuts[vreg as usize], at);
        debug_assert!(before == Point::MAX || at < before, "a cut register holds nothing behind the cut");
        let segments = self.segments(vreg);
        if let Some(reg) = self.assigned.homes[vreg as usize] {
            self.held[usize::from(reg.0)].take(vreg, at, segments);
        }
        for used in self.ranges.uses_of(vreg) {
            let early = point(used.inst(), EARLY);
            let was_cut = before != Point::MAX && early + 1 > before;
            if early + 1 > at && !was_cut && used.needs_register() {
                self.queue.push(Reverse((early, Item::Operand(used.operand))));
            }
        }
    }
}

/// The first of a group. Shortens the ways to it.
fn first_of(groups: &mut [u32], vreg: u32) -> u32 {
    let mut at = vreg as usize;
    while groups[at] as usize != at {
        groups[at] = groups[groups[at] as usize];
        at = groups[at] as usize;
    }
    at as u32
}
