//! Where virtual registers are live, in the order of the code.
//!
//! One walk over the code finds definitions, and the last use of each virtual register in each block, besides the registers that
//! instructions are tied to. Then one virtual register after the other is followed backwards to its definition, each block once: the time
//! is that of the result, for any graph whose blocks come after those that dominate them.

use std::ops::Range;

use super::allocations::Allocations;
use super::hints::Hints;
use super::live::{Edges, Live};
use super::point::{AFTER, BEFORE, EARLY, LATE, Point, point};
use crate::codegen::lir::{Function, Place, Reg, Role, Vreg, taken};
use crate::codegen::reuse::{empty, filled};

/// In place of a position: none.
const NONE: u32 = u32::MAX;

/// Definition and uses of a virtual register.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveRange {
    /// Point of the definition.
    pub(super) start: Point,
    /// Up to where it needs a register, which its definition writes; the start if it can be in its slot from there.
    pub(super) needed: Point,
    /// The block of the definition, or [`NONE`] if there is no definition.
    defining: u32,
    /// Up to where it is used in that.
    until: Point,
    /// Position of the last other block in which it is used.
    last: u32,
    /// Its segments, in order and apart from each other: where they begin and end among all.
    segments: [u32; 2],
    /// The first register that an operand of it is tied to.
    pub(super) fixed: Option<Reg>,
}

impl LiveRange {
    const UNKNOWN: Self =
        Self { start: 0, needed: 0, defining: NONE, until: 0, last: NONE, segments: [0; 2], fixed: None };
}

/// A block in which a virtual register is used.
#[derive(Clone, Copy, Debug)]
struct UsedIn {
    block: u32,
    /// The last point at which it is.
    until: Point,
    /// Position of the block before for the same virtual register.
    before: u32,
}

/// LiveRanges of all virtual registers.
#[derive(Debug, Default)]
pub(super) struct LiveRanges {
    pub(super) vregs: Vec<LiveRange>,
    /// The virtual registers that are defined, in the order of the points where they begin to be, and of their numbers.
    pub(super) order: Vec<(Point, u32)>,
    segments: Vec<Range<Point>>,
    used_in: Vec<UsedIn>,
    /// The virtual registers that operands tie to registers.
    tied: Vec<u32>,
    edges: Edges,
    /// The first virtual register that is live before its definition.
    early: Option<u32>,
}

impl LiveRanges {
    /// Finds the ranges of a function. Registers that instructions are tied to, or overwrite, are taken for them, and virtual registers of
    /// which moves would best keep the register become hints.
    #[inline(never)]
    pub(super) fn find<O>(
        &mut self,
        function: &Function<O>,
        held: &mut [Allocations],
        hints: &mut Hints,
        live: &mut Live,
    ) {
        let count = function.vregs as usize;
        filled(&mut self.vregs, LiveRange::UNKNOWN, count);
        empty(&mut self.order, count);
        empty(&mut self.segments, count);
        empty(&mut self.used_in, count);
        self.tied.clear();
        self.edges.find(function);
        self.walk(function, held, hints);
        // They are nearly sorted: only those of one instruction, or block, may be out of order.
        if !self.order.is_sorted() {
            self.order.sort_unstable();
        }
        self.tied.sort_unstable();
        for &vreg in &self.tied {
            if let Some(reg) = self.vregs[vreg as usize].fixed {
                hints.prefer(vreg, reg);
            }
        }
        live.begin(function);
        self.early = None;
        for at in 0..self.order.len() {
            let (start, vreg) = self.order[at];
            let range = &mut self.vregs[vreg as usize];
            let first = self.segments.len() as u32;
            if range.last == NONE {
                self.segments.push(start..range.until);
                range.segments = [first, first + 1];
            } else {
                self.live(vreg as usize, live);
                self.vregs[vreg as usize].segments = [first, self.segments.len() as u32];
            }
        }
    }

    /// Finds definitions and uses in the order of the code.
    #[inline(never)]
    fn walk<O>(&mut self, function: &Function<O>, held: &mut [Allocations], hints: &mut Hints) {
        for (number, block) in (0..).zip(&function.blocks) {
            let start = point(block.insts.start, BEFORE);
            for param in function.params_of(block) {
                self.define(*param, number, start..start);
            }
            let insts = &function.insts[block.insts.start as usize..block.insts.end as usize];
            for (at, inst) in (block.insts.start..).zip(insts) {
                let operands = function.operands_of(inst);
                // An operand of which a definition takes the register is moved there before.
                let taken = taken(operands);
                let late = point(at, LATE)..point(at, AFTER);
                for (position, operand) in operands.iter().enumerate() {
                    let vreg = operand.vreg;
                    match (operand.role, operand.place) {
                        (Role::Use, Place::Any) if Some(position) != taken => {
                            self.reach(vreg, number, late.start);
                        }
                        (Role::Use, place) => {
                            self.reach(vreg, number, point(at, EARLY));
                            if let Place::Fixed(reg) = place {
                                self.tie(vreg, reg, point(at, EARLY)..late.start, held);
                            }
                        }
                        (Role::Def, Place::Any) => self.define(vreg, number, late.clone()),
                        (Role::Def, Place::Early) => {
                            self.define(vreg, number, point(at, EARLY)..late.end);
                        }
                        (Role::Def, Place::Reuse(of)) => {
                            self.define(vreg, number, point(at, EARLY)..late.end);
                            if let Some(of) = operands.get(usize::from(of)) {
                                hints.add(vreg, of.vreg);
                            }
                        }
                        // It moves to where it will be.
                        (Role::Def, Place::Fixed(reg)) => {
                            self.define(vreg, number, late.end..late.end);
                            self.tie(vreg, reg, late.clone(), held);
                        }
                    }
                }
                inst.clobbers.iter().for_each(|reg| held[usize::from(reg.0)].fix(late.clone()));
            }
            let end = point(block.insts.end, BEFORE);
            for target in function.targets_of(block) {
                function.args_of(target).iter().for_each(|arg| self.reach(*arg, number, end));
            }
        }
    }

    #[inline]
    fn define(&mut self, vreg: Vreg, block: u32, needed: Range<Point>) {
        let range = &mut self.vregs[vreg.0 as usize];
        (range.start, range.needed, range.defining) = (needed.start, needed.end, block);
        // A definition needs a register, even if its value is never read.
        range.until = needed.end.max(needed.start + 1);
        self.order.push((needed.start, vreg.0));
    }

    /// A virtual register is used in a block, up to a point.
    #[inline]
    fn reach(&mut self, vreg: Vreg, block: u32, until: Point) {
        let range = &mut self.vregs[vreg.0 as usize];
        if range.defining == block {
            range.until = until.max(range.until);
            return;
        }
        match self.used_in.get_mut(range.last as usize) {
            Some(used) if used.block == block => used.until = until.max(used.until),
            _ => {
                self.used_in.push(UsedIn { block, until, before: range.last });
                range.last = self.used_in.len() as u32 - 1;
            }
        }
    }

    fn tie(&mut self, vreg: Vreg, reg: Reg, points: Range<Point>, held: &mut [Allocations]) {
        held[usize::from(reg.0)].fix(points);
        let fixed = &mut self.vregs[vreg.0 as usize].fixed;
        if fixed.is_none() {
            *fixed = Some(reg);
            self.tied.push(vreg.0);
        }
    }

    /// A virtual register that is live before its definition. The scan takes definitions in the order of the code, so it must see none.
    pub(super) const fn live_before_definition(&self) -> Option<u32> {
        self.early
    }

    /// The segments of a virtual register.
    #[inline]
    pub(super) fn segments_of(&self, vreg: u32) -> &[Range<Point>] {
        self.segments(&self.vregs[vreg as usize])
    }

    /// The segments of a range.
    #[inline]
    pub(super) fn segments(&self, range: &LiveRange) -> &[Range<Point>] {
        let [start, end] = range.segments;
        &self.segments[start as usize..end as usize]
    }

    /// The predecessors of a block.
    pub(super) fn before(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        self.edges.to(block).flat_map(|(word, mut blocks)| {
            std::iter::from_fn(move || {
                let bit = blocks.trailing_zeros();
                blocks &= blocks.checked_sub(1)?;
                Some(word * 64 + bit)
            })
        })
    }

    /// Finds the segments of a virtual register that is used in other blocks than that of its definition.
    fn live(&mut self, vreg: usize, live: &mut Live) {
        let LiveRange { start, defining, until, last, .. } = self.vregs[vreg];
        live.define(defining);
        let mut next = last;
        while let Some(used) = self.used_in.get(next as usize) {
            live.reach(used.block, used.until);
            next = used.before;
        }
        live.spread(&self.edges);
        if live.take(defining, start..until, &mut self.segments) {
            self.early.get_or_insert(vreg as u32);
        }
    }
}
