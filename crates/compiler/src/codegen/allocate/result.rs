//! The result: registers of operands, and moves.

use super::assignments::{Assigned, Assignment};
use super::live_ranges::LiveRanges;
use super::moves::{Loc, Move, MoveLists};
use super::point::{AFTER, BEFORE, Point, point};
use crate::codegen::lir::{Block, Function, Inst, Place, Reg, RegSet, Role, Target, taken};
use crate::codegen::reuse::{empty, filled};

/// Where everything is.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    /// By operand: its register.
    pub operands: Vec<Reg>,
    /// Moves before an instruction by twice its number, and those after it by the next number.
    pub around: MoveLists,
    /// By edge: moves on the way there. The edges are those to the targets of one block after the other.
    pub edges: MoveLists,
    /// By block: its first edge.
    pub first_edges: Vec<u32>,
    /// Number of slots.
    pub slots: u32,
    /// The registers that instructions and moves write.
    pub written: RegSet,
}

impl Allocation {
    /// Moves before an instruction.
    #[must_use]
    pub fn before(&self, inst: u32) -> &[Move] {
        self.around.get(2 * inst)
    }

    /// Moves after an instruction.
    #[must_use]
    pub fn after(&self, inst: u32) -> &[Move] {
        self.around.get(2 * inst + 1)
    }

    /// Moves on the way from a block to one of its targets.
    #[must_use]
    #[inline]
    pub fn edge(&self, block: u32, target: usize) -> &[Move] {
        self.edges.get(self.first_edges[block as usize] + target as u32)
    }
}

/// Puts together what the scan has found. The error is a virtual register that is read and is nowhere.
pub(super) fn resolve<O>(
    function: &Function<O>,
    ranges: &LiveRanges,
    assigned: &Assigned,
    scratch: Reg,
    [before, after]: &mut [Vec<Move>; 2],
    allocation: &mut Allocation,
) -> Result<(), u32> {
    filled(&mut allocation.operands, scratch, function.operands.len());
    allocation.around.clear(function.insts.len() / 4);
    allocation.edges.clear(function.targets.len() / 4);
    empty(&mut allocation.first_edges, function.blocks.len());
    (allocation.slots, allocation.written) = (assigned.spill_slots, RegSet::default());
    before.clear();
    after.clear();
    let mut resolver = Resolver { function, ranges, assigned, scratch, allocation };
    resolver.insts(before, after)?;
    resolver.edges(before)
}

struct Resolver<'a, O> {
    function: &'a Function<O>,
    ranges: &'a LiveRanges,
    assigned: &'a Assigned,
    scratch: Reg,
    allocation: &'a mut Allocation,
}

/// Adds a move, unless the value is there.
#[inline]
fn add(moves: &mut Vec<Move>, to: Loc, from: Loc) {
    if to != from {
        moves.push(Move { to, from });
    }
}

impl<O> Resolver<'_, O> {
    /// Where a virtual register is at a point at which it is live; the error is one that is nowhere.
    #[inline]
    fn at(&self, vreg: u32, at: Point) -> Result<Loc, u32> {
        self.assigned.assignments[vreg as usize].at(at).ok_or(vreg)
    }

    /// Adds a list of moves, one after the other.
    fn order(
        &mut self,
        number: u32,
        moves: &mut Vec<Move>,
        lists: impl Fn(&mut Allocation) -> &mut MoveLists,
    ) {
        // A slot behind the others is for circles of moves.
        let free = self.assigned.spill_slots;
        let (lists, mut written, mut slots) = (lists(self.allocation), RegSet::default(), 0);
        let first = lists.moves.len();
        lists.add(number, moves, self.scratch, free);
        for one in &lists.moves[first..] {
            match one.to {
                Loc::Reg(reg) => written = written.with(reg),
                Loc::Slot(slot) => slots = slots.max(slot + 1),
            }
        }
        self.allocation.written = self.allocation.written.union(written);
        self.allocation.slots = slots.max(self.allocation.slots);
    }

    /// Registers of all instructions' operands, and the moves around instructions.
    #[inline(never)]
    fn insts(&mut self, before: &mut Vec<Move>, after: &mut Vec<Move>) -> Result<(), u32> {
        let (function, assigned) = (self.function, self.assigned);
        let (assignments, mut written) = (assigned.assignments.as_slice(), RegSet::default());
        for (inst, data) in (0..).zip(&function.insts) {
            let registers =
                &mut self.allocation.operands[data.operands.start as usize..data.operands.end as usize];
            // The operands of most instructions are where their virtual registers are all the time.
            let mut is_plain = assigned.loaded.is_empty();
            for (operand, register) in function.operands_of(data).iter().zip(registers) {
                let assignment = &assignments[operand.vreg.0 as usize];
                match (operand.place, assignment.reg) {
                    (Place::Any | Place::Early, Some(reg)) if assignment.slot.is_none() => {
                        *register = reg;
                        if operand.role == Role::Def {
                            written = written.with(reg);
                        }
                    }
                    _ => {
                        is_plain = false;
                        break;
                    }
                }
            }
            if is_plain {
                written = written.union(data.clobbers);
            } else {
                self.inst(inst, data, before, after)?;
            }
        }
        self.allocation.written = self.allocation.written.union(written);
        Ok(())
    }

    /// Registers of an instruction's operands, and the moves around it.
    #[inline(never)]
    fn inst(
        &mut self,
        inst: u32,
        data: &Inst<O>,
        before: &mut Vec<Move>,
        after: &mut Vec<Move>,
    ) -> Result<(), u32> {
        let (function, assignments) = (self.function, &self.assigned.assignments);
        let operands = function.operands_of(data);
        let range = data.operands.start as usize..data.operands.end as usize;
        // default: the list is empty if no operand is loaded.
        let loaded = self.assigned.loaded.get(range.clone()).unwrap_or_default();
        let registers = &mut self.allocation.operands[range];
        let mut written = data.clobbers;
        for (at, (operand, register)) in operands.iter().zip(&mut *registers).enumerate() {
            let (vreg, assignment) = (operand.vreg.0, &assignments[operand.vreg.0 as usize]);
            match (operand.role, operand.place) {
                (Role::Use, Place::Fixed(reg)) => {
                    *register = reg;
                    add(before, Loc::Reg(reg), assignment.at(point(inst, BEFORE)).ok_or(vreg)?);
                }
                (Role::Use, _) => {
                    if let Some(reg) = loaded.get(at).copied().flatten() {
                        *register = reg;
                        add(before, Loc::Reg(reg), assignment.at(point(inst, BEFORE)).ok_or(vreg)?);
                    } else if let Some(reg) = assignment.reg {
                        *register = reg;
                    } else if assignment.slot.is_none() {
                        return Err(vreg);
                    }
                }
                (Role::Def, Place::Fixed(reg)) => {
                    *register = reg;
                    written = written.with(reg);
                    places(assignment, point(inst, AFTER)).for_each(|to| add(after, to, Loc::Reg(reg)));
                }
                (Role::Def, place) => {
                    let reg = assignment.reg.ok_or(vreg)?;
                    *register = reg;
                    written = written.with(reg);
                    if let Place::Reuse(taken) = place
                        && let Some(used) = operands.get(usize::from(taken))
                    {
                        let used = used.vreg.0;
                        let from = assignments[used as usize].at(point(inst, BEFORE)).ok_or(used)?;
                        add(before, Loc::Reg(reg), from);
                    }
                    if let Some(slot) = assignment.slot {
                        after.push(Move { to: Loc::Slot(slot), from: Loc::Reg(reg) });
                    }
                }
            }
        }
        self.allocation.written = self.allocation.written.union(written);
        // A use whose register a definition takes over is in that register.
        let last = registers.last().copied();
        if let (Some(register), Some(last)) = (taken(operands).and_then(|at| registers.get_mut(at)), last) {
            *register = last;
        }
        if !before.is_empty() {
            self.order(2 * inst, before, |allocation| &mut allocation.around);
        }
        if !after.is_empty() {
            self.order(2 * inst + 1, after, |allocation| &mut allocation.around);
        }
        Ok(())
    }

    /// Moves on the way from blocks to their targets.
    fn edges(&mut self, moves: &mut Vec<Move>) -> Result<(), u32> {
        let (function, reloads) = (self.function, self.reloads());
        let (mut reloads, mut edge) = (reloads.iter(), 0);
        let mut reload = reloads.next();
        for (number, block) in (0..).zip(&function.blocks) {
            self.allocation.first_edges.push(edge);
            for (at, target) in (0..).zip(function.targets_of(block)) {
                if !target.args.is_empty() {
                    self.params(block, target, moves)?;
                }
                while let Some((_, one)) = reload.filter(|(edge, _)| *edge == (number, at)) {
                    moves.push(*one);
                    reload = reloads.next();
                }
                if !moves.is_empty() {
                    self.order(edge, moves, |allocation| &mut allocation.edges);
                }
                edge += 1;
            }
        }
        Ok(())
    }

    /// Arguments go to where the parameters are.
    fn params(&self, block: &Block, target: &Target, moves: &mut Vec<Move>) -> Result<(), u32> {
        let next = &self.function.blocks[target.block as usize];
        let (end, start) = (point(block.insts.end, BEFORE) - 1, point(next.insts.start, BEFORE));
        for (param, arg) in self.function.params_of(next).iter().zip(self.function.args_of(target)) {
            let from = self.at(arg.0, end)?;
            places(&self.assigned.assignments[param.0 as usize], start).for_each(|to| add(moves, to, from));
        }
        Ok(())
    }

    /// Virtual registers that are in their slots at the end of a block and in registers at the start of the next are loaded in between. The result is
    /// sorted by edges: a block, and the position of its target.
    fn reloads(&self) -> Vec<((u32, u32), Move)> {
        let mut reloads = Vec::new();
        if self.assigned.spill_slots == 0 {
            return reloads;
        }
        let blocks = &self.function.blocks;
        let start = |block: u32| point(blocks[block as usize].insts.start, BEFORE);
        let end = |block: u32| point(blocks[block as usize].insts.end, BEFORE) - 1;
        for (vreg, assignment) in
            (0..).zip(&self.assigned.assignments).filter(|(_, assignment)| assignment.slot.is_some())
        {
            let begins = self.ranges.vregs[vreg as usize].start;
            for segment in self.ranges.segments_of(vreg) {
                // Blocks that begin within it; those of which it is a parameter have it there by a move.
                let first = blocks.partition_point(|block| point(block.insts.start, BEFORE) < segment.start);
                let within =
                    (first as u32..blocks.len() as u32).take_while(|block| start(*block) < segment.end);
                for block in within.filter(|block| start(*block) != begins) {
                    let Some(to @ Loc::Reg(_)) = assignment.at(start(block)) else { continue };
                    for before in self.ranges.before(block) {
                        let Some(from @ Loc::Slot(_)) = assignment.at(end(before)) else { continue };
                        let targets = self.function.targets_of(&blocks[before as usize]);
                        let to_it = (0..).zip(targets).filter(|(_, target)| target.block == block);
                        reloads.extend(to_it.map(|(at, _)| ((before, at), Move { to, from })));
                    }
                }
            }
        }
        reloads.sort_by_key(|(edge, _)| *edge);
        reloads
    }
}

/// Where a virtual register has to be stored when it begins to be, besides where it is.
#[inline]
fn places(assignment: &Assignment, start: Point) -> impl Iterator<Item = Loc> {
    let at = assignment.at(start).filter(|at| matches!(at, Loc::Reg(_)));
    at.into_iter().chain(assignment.slot.map(Loc::Slot))
}
