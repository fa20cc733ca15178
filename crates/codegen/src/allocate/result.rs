//! The result: registers of operands, and moves.

use super::moves::{Loc, Move, sequence};
use super::ranges::{AFTER, BEFORE, Point, Ranges, point};
use super::scan::Assigned;
use crate::lir::{Function, Operand, Place, Reg, Role};

/// Where everything is.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    /// By operand: its register.
    pub operands: Vec<Reg>,
    /// By instruction: moves before it, in their order.
    pub before: Vec<Vec<Move>>,
    /// By instruction: moves after it.
    pub after: Vec<Vec<Move>>,
    /// By block and target: moves on the way there.
    pub edges: Vec<Vec<Vec<Move>>>,
    /// Number of slots.
    pub slots: u32,
}

/// Puts together what the scan has found. The error is a virtual register that is read and is nowhere.
pub(super) fn resolve<O>(
    function: &Function<O>,
    ranges: &Ranges,
    assigned: &Assigned,
    scratch: Reg,
) -> Result<Allocation, u32> {
    let resolver = Resolver { function, ranges, assigned };
    let mut allocation = Allocation {
        operands: vec![scratch; function.operands.len()],
        before: vec![Vec::new(); function.insts.len()],
        after: vec![Vec::new(); function.insts.len()],
        edges: function.blocks.iter().map(|block| vec![Vec::new(); block.targets.len()]).collect(),
        // The last one is for circles of moves.
        slots: assigned.slot_count,
    };
    for inst in 0..function.insts.len() as u32 {
        resolver.inst(inst, &mut allocation)?;
    }
    resolver.params(&mut allocation)?;
    resolver.reloads(&mut allocation);
    let free = assigned.slot_count;
    let mut uses_free = false;
    let edges = allocation.edges.iter_mut().flatten();
    for moves in allocation.before.iter_mut().chain(&mut allocation.after).chain(edges) {
        *moves = sequence(std::mem::take(moves), scratch, free);
        uses_free |= moves.iter().any(|one| one.to == Loc::Slot(free));
    }
    allocation.slots += u32::from(uses_free);
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
    fn inst(&self, inst: u32, allocation: &mut Allocation) -> Result<(), u32> {
        let data = &self.function.insts[inst as usize];
        let operands = self.function.operands_of(data);
        let first = data.operands.start as usize;
        let mut set = |at: usize, reg: Reg| allocation.operands[first + at] = reg;
        let (before, after) = (&mut allocation.before[inst as usize], &mut allocation.after[inst as usize]);
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
                allocation.operands[first + usize::from(taken)] = home;
            }
        }
        Ok(())
    }

    /// Arguments go to where the parameters are.
    fn params(&self, allocation: &mut Allocation) -> Result<(), u32> {
        for (number, block) in self.function.blocks.iter().enumerate() {
            let end = point(block.insts.end, BEFORE) - 1;
            for (at, target) in block.targets.iter().enumerate() {
                let next = &self.function.blocks[target.block as usize];
                let start = point(next.insts.start, BEFORE);
                for (param, arg) in next.params.iter().zip(&target.args) {
                    let from = self.at(arg.0, end)?;
                    let places = self.places(param.0, start);
                    allocation.edges[number][at].extend(places.map(|to| Move { to, from }));
                }
            }
        }
        Ok(())
    }

    /// What is in its slot at the end of a block and in its register at the start of the next is loaded in between.
    fn reloads(&self, allocation: &mut Allocation) {
        let ends = |block: u32| point(self.function.blocks[block as usize].insts.end, BEFORE) - 1;
        for (vreg, range) in (0..).zip(&self.ranges.vregs) {
            if self.assigned.slots[vreg as usize].is_none() {
                continue;
            }
            let live_in = &self.ranges.live_in[range.live_in.start as usize..range.live_in.end as usize];
            for &block in live_in {
                let start = point(self.function.blocks[block as usize].insts.start, BEFORE);
                let Some(to @ Loc::Reg(_)) = self.find(vreg, start) else { continue };
                for &(before, at) in &self.ranges.predecessors[block as usize] {
                    if let Some(from @ Loc::Slot(_)) = self.find(vreg, ends(before)) {
                        allocation.edges[before as usize][at as usize].push(Move { to, from });
                    }
                }
            }
        }
    }
}
