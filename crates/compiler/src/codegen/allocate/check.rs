//! The checker: it follows what each register and slot holds, by the names of virtual registers, on all ways through an allocation. A use
//! must find its own. It knows nothing of how the allocation was made.

use thiserror::Error;

use super::moves::{Loc, Move};
use super::result::Allocation;
use crate::codegen::lir::{Function, Operand, Place, Reg, RegSet, Role, Vreg};

/// A fault of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// A use, or an argument at the end of a block, does not find its value.
    #[error("instruction {inst}: v{} is not where it is read", vreg.0)]
    Lost {
        /// The instruction; for an argument the last one of its block.
        inst: u32,
        /// The virtual register.
        vreg: Vreg,
    },
    /// An operand is in a register where it may not be.
    #[error("instruction {inst}: v{} is in register {}, which its operand does not admit", vreg.0, reg.0)]
    Constraint {
        /// The instruction.
        inst: u32,
        /// The virtual register.
        vreg: Vreg,
        /// The register.
        reg: Reg,
    },
    /// A value is overwritten by another operand of its instruction.
    #[error("instruction {inst}: two operands are in register {}", reg.0)]
    Overlap {
        /// The instruction.
        inst: u32,
        /// The register.
        reg: Reg,
    },
}

/// Number of registers that a set can have; slots have the numbers behind.
const REGISTERS: usize = 32;

/// The virtual registers whose value each place holds, in rising order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State(Vec<Vec<u32>>);

impl State {
    fn place(loc: Loc) -> usize {
        match loc {
            Loc::Reg(reg) => usize::from(reg.0),
            Loc::Slot(slot) => REGISTERS + slot as usize,
        }
    }

    fn holds(&self, loc: Loc, vreg: Vreg) -> bool {
        self.0.get(Self::place(loc)).is_some_and(|held| held.binary_search(&vreg.0).is_ok())
    }

    fn make(&mut self, moves: &[Move]) {
        for Move { to, from } in moves {
            // default: a place that nothing was written to holds nothing, which a read of it is refused for.
            let held = self.0.get(Self::place(*from)).cloned().unwrap_or_default();
            if let Some(place) = self.0.get_mut(Self::place(*to)) {
                *place = held;
            }
        }
    }

    fn clear(&mut self, reg: Reg) {
        self.0[usize::from(reg.0)].clear();
    }

    /// No place holds the value that a virtual register had before.
    fn forget(&mut self, vreg: Vreg) {
        for held in &mut self.0 {
            held.retain(|other| *other != vreg.0);
        }
    }

    fn define(&mut self, reg: Reg, vreg: Vreg) {
        self.forget(vreg);
        self.0[usize::from(reg.0)] = vec![vreg.0];
    }

    /// The parameters of a block hold what their arguments do.
    fn rename(&mut self, params: &[Vreg], args: &[Vreg]) {
        let with: Vec<Vec<u32>> = self
            .0
            .iter()
            .map(|held| {
                let given = params.iter().zip(args).filter(|(_, arg)| held.binary_search(&arg.0).is_ok());
                given.map(|(param, _)| param.0).collect()
            })
            .collect();
        params.iter().for_each(|param| self.forget(*param));
        for (held, with) in self.0.iter_mut().zip(with) {
            held.extend(with);
            held.sort_unstable();
            held.dedup();
        }
    }

    /// Keeps what the other one holds too. Returns whether something was dropped.
    fn meet(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (held, other) in self.0.iter_mut().zip(&other.0) {
            let before = held.len();
            held.retain(|vreg| other.binary_search(vreg).is_ok());
            changed |= held.len() != before;
        }
        changed
    }
}

/// Checks an allocation of a function to some registers.
///
/// # Errors
/// The first rule that it breaks.
pub fn check<O>(
    function: &Function<O>,
    allocation: &Allocation,
    registers: RegSet,
) -> Result<(), CheckError> {
    let places = REGISTERS + allocation.slots as usize;
    let mut before: Vec<Option<State>> = vec![None; function.blocks.len()];
    if let Some(entry) = before.first_mut() {
        *entry = Some(State(vec![Vec::new(); places]));
    }
    let mut work = vec![0_u32];
    while let Some(number) = work.pop() {
        let Some(block) = function.blocks.get(number as usize) else { continue };
        let Some(mut state) = before[number as usize].clone() else { continue };
        for inst in block.insts.clone() {
            step(function, allocation, registers, inst, &mut state)?;
        }
        for (at, target) in function.targets_of(block).iter().enumerate() {
            let moves = allocation.edge(number, at);
            let mut state = state.clone();
            let params = function.params_of(&function.blocks[target.block as usize]);
            let args = function.args_of(target);
            let is_lost = |arg: &&Vreg| !state.0.iter().any(|held| held.binary_search(&arg.0).is_ok());
            if let Some(vreg) = args.iter().find(is_lost) {
                return Err(CheckError::Lost { inst: block.insts.end - 1, vreg: *vreg });
            }
            state.make(moves);
            state.rename(params, args);
            let changed = match &mut before[target.block as usize] {
                Some(known) => known.meet(&state),
                unknown => {
                    *unknown = Some(state);
                    true
                }
            };
            if changed {
                work.push(target.block);
            }
        }
    }
    Ok(())
}

fn step<O>(
    function: &Function<O>,
    allocation: &Allocation,
    registers: RegSet,
    inst: u32,
    state: &mut State,
) -> Result<(), CheckError> {
    let data = &function.insts[inst as usize];
    let operands = function.operands_of(data);
    let assigned = &allocation.operands[data.operands.start as usize..data.operands.end as usize];
    state.make(allocation.before(inst));
    let (mut written, mut shared) = (RegSet::default(), RegSet::default());
    for (at, (Operand { vreg, role, place }, reg)) in operands.iter().zip(assigned).enumerate() {
        let admits = match *place {
            Place::Any | Place::Early => registers.has(*reg),
            Place::Fixed(fixed) => fixed == *reg,
            Place::Reuse(taken) => assigned.get(usize::from(taken)) == Some(reg),
        };
        if !admits {
            return Err(CheckError::Constraint { inst, vreg: *vreg, reg: *reg });
        }
        if *role == Role::Use && !state.holds(Loc::Reg(*reg), *vreg) {
            return Err(CheckError::Lost { inst, vreg: *vreg });
        }
        if *role == Role::Def {
            if written.has(*reg) || (data.clobbers.has(*reg) && matches!(place, Place::Any | Place::Early)) {
                return Err(CheckError::Overlap { inst, reg: *reg });
            }
            written = written.with(*reg);
            let taken = match place {
                Place::Reuse(taken) => Some(usize::from(*taken)),
                Place::Early => None,
                Place::Any | Place::Fixed(_) => continue,
            };
            let mut others = operands.iter().zip(assigned).enumerate();
            let is_in_it = others.any(|(other, (operand, other_reg))| {
                Some(other) != taken && other != at && operand.role == Role::Use && other_reg == reg
            });
            if is_in_it {
                shared = shared.with(*reg);
            }
        }
    }
    if let Some(reg) = shared.iter().next() {
        return Err(CheckError::Overlap { inst, reg });
    }
    data.clobbers.iter().for_each(|reg| state.clear(reg));
    for (Operand { vreg, role, .. }, reg) in operands.iter().zip(assigned) {
        if *role == Role::Def {
            state.define(*reg, *vreg);
        }
    }
    state.make(allocation.after(inst));
    Ok(())
}
