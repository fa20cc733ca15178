//! The result: registers of operands, and moves.

use super::moves::{Loc, Move, MoveLists, sequence};
use super::ranges::{AFTER, BEFORE, Point, Ranges, point};
use super::scan::Assigned;
use crate::lir::{Function, Operand, Place, Reg, Role};

/// Where everything is.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    /// By operand: its register.
    pub operands: Vec<Reg>,
    /// By instruction: moves before it.
    pub before: MoveLists,
    /// By instruction: moves after it.
    pub after: MoveLists,
    /// By edge: moves on the way there. The edges are those to the targets of one block after the other.
    pub edges: MoveLists,
    /// By block: its first edge.
    pub first_edges: Vec<u32>,
    /// Number of slots.
    pub slots: u32,
}

impl Allocation {
    /// Moves on the way from a block to one of its targets.
    #[must_use]
    #[inline]
    pub fn edge(&self, block: u32, target: usize) -> &[Move] {
        let first = self.first_edges.get(block as usize);
        first.map_or(&[], |first| self.edges.get(first + target as u32))
    }
}

/// Puts together what the scan has found. The error is a virtual register that is read and is nowhere.
pub(super) fn resolve<O>(
    function: &Function<O>,
    ranges: &Ranges,
    assigned: &Assigned,
    scratch: Reg,
) -> Result<Allocation, u32> {
    let resolver = Resolver { function, ranges, assigned };
    let lists = MoveLists::sized;
    let operands = vec![scratch; function.operands.len()];
    let (insts, edges) = (function.insts.len(), function.targets.len());
    let mut allocation = Allocation {
        operands,
        before: lists(insts),
        after: lists(insts),
        edges: lists(edges),
        first_edges: Vec::with_capacity(function.blocks.len()),
        slots: 0,
    };
    // The last one is for circles of moves.
    let free = assigned.slot_count;
    let order = |moves: &mut Vec<Move>, lists: &mut MoveLists| {
        sequence(moves, scratch, free, &mut lists.moves);
        lists.end();
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for inst in 0..function.insts.len() as u32 {
        resolver.inst(inst, &mut allocation.operands, &mut before, &mut after)?;
        order(&mut before, &mut allocation.before);
        order(&mut after, &mut allocation.after);
    }
    let mut reloads = resolver.reloads().into_iter().peekable();
    for (number, block) in (0..).zip(&function.blocks) {
        allocation.first_edges.push(allocation.edges.bounds.len() as u32 - 1);
        for at in 0..block.targets.len() as u32 {
            resolver.params(number, at, &mut before)?;
            while let Some((_, reload)) = reloads.next_if(|(edge, _)| *edge == (number, at)) {
                before.push(reload);
            }
            order(&mut before, &mut allocation.edges);
        }
    }
    let lists = [&allocation.before, &allocation.after, &allocation.edges];
    let uses_free = lists.iter().any(|lists| lists.moves.iter().any(|one| one.to == Loc::Slot(free)));
    allocation.slots = assigned.slot_count + u32::from(uses_free);
    Ok(allocation)
}

struct Resolver<'a, O> {
    function: &'a Function<O>,
    ranges: &'a Ranges,
    assigned: &'a Assigned,
}

impl<O> Resolver<'_, O> {
    /// Where a virtual register is at a point at which it is live; the error is one that is nowhere.
    fn at(&self, vreg: u32, at: Point) -> Result<Loc, u32> {
        self.find(vreg, at).ok_or(vreg)
    }

    fn find(&self, vreg: u32, at: Point) -> Option<Loc> {
        let (home, slot) = (self.assigned.homes[vreg as usize], self.assigned.slots[vreg as usize]);
        match home.filter(|_| at < self.assigned.cuts[vreg as usize]) {
            Some(home) => Some(Loc::Reg(home)),
            None => slot.map(Loc::Slot),
        }
    }

    /// Where a virtual register has to be stored when it begins to be, besides where it is.
    fn places(&self, vreg: u32, start: Point) -> impl Iterator<Item = Loc> {
        let home = self.find(vreg, start).filter(|at| matches!(at, Loc::Reg(_)));
        home.into_iter().chain(self.assigned.slots[vreg as usize].map(Loc::Slot))
    }

    /// Registers of an instruction's operands, and the moves around it.
    fn inst(
        &self,
        inst: u32,
        registers: &mut [Reg],
        before: &mut Vec<Move>,
        after: &mut Vec<Move>,
    ) -> Result<(), u32> {
        let data = &self.function.insts[inst as usize];
        let operands = self.function.operands_of(data);
        let first = data.operands.start as usize;
        let mut set = |at: usize, reg: Reg| registers[first + at] = reg;
        for (at, Operand { vreg, role, place }) in operands.iter().enumerate() {
            let vreg = vreg.0;
            match (role, place) {
                (Role::Use, Place::Fixed(reg)) => {
                    set(at, *reg);
                    before.push(Move { to: Loc::Reg(*reg), from: self.at(vreg, point(inst, BEFORE))? });
                }
                (Role::Use, _) => {
                    let loaded = self.assigned.loaded[first + at];
                    let from = self.at(vreg, point(inst, BEFORE))?;
                    if let Some(reg) = loaded.or(self.assigned.homes[vreg as usize]) {
                        set(at, reg);
                    }
                    before.extend(loaded.map(|reg| Move { to: Loc::Reg(reg), from }));
                }
                (Role::Def, Place::Fixed(reg)) => {
                    set(at, *reg);
                    let places = self.places(vreg, point(inst, AFTER));
                    after.extend(places.map(|to| Move { to, from: Loc::Reg(*reg) }));
                }
                (Role::Def, Place::Any | Place::Early | Place::Same(_)) => {
                    let home = self.assigned.homes[vreg as usize].ok_or(vreg)?;
                    set(at, home);
                    if let Place::Same(taken) = place
                        && let Some(used) = operands.get(usize::from(*taken))
                    {
                        let from = self.at(used.vreg.0, point(inst, BEFORE))?;
                        before.push(Move { to: Loc::Reg(home), from });
                    }
                    let slot = self.assigned.slots[vreg as usize].map(Loc::Slot);
                    after.extend(slot.map(|to| Move { to, from: Loc::Reg(home) }));
                }
            }
        }
        // A use whose register a definition takes over is in that register.
        for operand in operands {
            if let (Place::Same(taken), Some(home)) =
                (operand.place, self.assigned.homes[operand.vreg.0 as usize])
            {
                registers[first + usize::from(taken)] = home;
            }
        }
        Ok(())
    }

    /// Arguments go to where the parameters are.
    fn params(&self, number: u32, at: u32, moves: &mut Vec<Move>) -> Result<(), u32> {
        let block = &self.function.blocks[number as usize];
        let target = &self.function.targets_of(block)[at as usize];
        let next = &self.function.blocks[target.block as usize];
        let (end, start) = (point(block.insts.end, BEFORE) - 1, point(next.insts.start, BEFORE));
        for (param, arg) in self.function.params_of(next).iter().zip(self.function.args_of(target)) {
            let from = self.at(arg.0, end)?;
            moves.extend(self.places(param.0, start).map(|to| Move { to, from }));
        }
        Ok(())
    }

    /// Virtual registers that are in their slots at the end of a block and in registers at the start of the next are loaded in between. The result is
    /// sorted by edges: a block, and the position of its target.
    fn reloads(&self) -> Vec<((u32, u32), Move)> {
        let ends = |block: u32| point(self.function.blocks[block as usize].insts.end, BEFORE) - 1;
        let mut reloads = Vec::new();
        for (vreg, range) in (0..).zip(&self.ranges.vregs) {
            if self.assigned.slots[vreg as usize].is_none() {
                continue;
            }
            let live_in = &self.ranges.live_in[range.live_in.start as usize..range.live_in.end as usize];
            for &block in live_in {
                let start = point(self.function.blocks[block as usize].insts.start, BEFORE);
                let Some(to @ Loc::Reg(_)) = self.find(vreg, start) else { continue };
                for &edge in self.ranges.edges_to(block) {
                    if let Some(from @ Loc::Slot(_)) = self.find(vreg, ends(edge.0)) {
                        reloads.push((edge, Move { to, from }));
                    }
                }
            }
        }
        reloads.sort_by_key(|(edge, _)| *edge);
        reloads
    }
}
