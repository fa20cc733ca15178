//! From a function in SSA form to the instructions of a machine.
//!
//! The facts of a function that selection uses (uses, the order of blocks, loops) are computed once for its code and for the loop over
//! a burst around it, which takes over what was selected, but for the first block and those that end an item.

use crate::ir::arena::{Key, Side};
use crate::ir::cfg::Dominators;
use crate::ir::loops::Loops;
use crate::ir::uses::Uses;
use crate::ir::{Block, Graph, Terminator, Value};
use thiserror::Error;

use crate::codegen::allocate::{AllocateError, Allocator};
use crate::codegen::emit::Emitter;
use crate::codegen::lir::{Function, Vreg};
use crate::codegen::machine::{Frame, LoopMachine, Machine};
use crate::internal::Internal;

/// Code cannot be generated: a bug of a machine or of the allocator, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// Registers cannot be allocated.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// A block of the machine's has no instruction.
    #[error("block {0} has no instruction")]
    Empty(u32),
    /// A state that the machine or emission rules out.
    #[error(transparent)]
    Internal(#[from] Internal),
}

/// Memory for the code of one function after the other, and the instructions of a function that is also the body of a loop.
pub struct Room<O> {
    selected: Selected<O>,
    kept: Selected<O>,
    allocator: Allocator,
}

impl<O> std::fmt::Debug for Room<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl<O> Default for Room<O> {
    fn default() -> Self {
        Self { selected: Selected::default(), kept: Selected::default(), allocator: Allocator::default() }
    }
}

impl<O> Room<O> {
    /// Keeps what was selected for the last function, for a loop with it as its body.
    pub const fn keep(&mut self) {
        std::mem::swap(&mut self.selected, &mut self.kept);
    }
}

/// The instructions that were selected for a function.
struct Selected<O> {
    lir: Function<O>,
    /// The virtual register that is the machine's for all blocks.
    shared: Option<Vreg>,
}

impl<O> Default for Selected<O> {
    fn default() -> Self {
        Self { lir: Function::default(), shared: None }
    }
}

/// Generates the code of a function, and returns the number of slots that its frame needs. The allocation is checked if that is asked for, as campaigns do, or in debug builds.
///
/// # Errors
/// The machine's instructions are not well formed, or need more registers than there are.
pub fn generate<M: Machine>(
    plan: &Plan<'_>,
    machine: &mut M,
    room: &mut Room<M::Op>,
    checked: bool,
) -> Result<u32, GenerateError> {
    plan.function.fault()?;
    let mut selection = Selection::of(plan, 0, plan.function.value_count() as u32, &mut room.selected);
    while let Some(at) = selection.next() {
        match at {
            0 => selection.begin(at, None),
            _ => selection.begin_with_params(at),
        }
        selection.block(at, machine)?;
    }
    room.selected.shared = machine.shared();
    room.finish(machine, checked)
}

/// Generates the code of a loop with a function as its body, which ends early where the function [stops](Terminator::Stop); otherwise as
/// [`generate`]. What was [kept](Room::keep) for the function is not selected again: its blocks, but the first one and those that end an
/// item.
///
/// # Errors
/// As [`generate`].
pub fn generate_loop<M: LoopMachine>(
    plan: &Plan<'_>,
    machine: &mut M,
    room: &mut Room<M::Op>,
    is_kept: bool,
    checked: bool,
) -> Result<u32, GenerateError>
where
    M::Op: Clone,
{
    let function = plan.function;
    function.fault()?;
    // What is taken over has the virtual registers that it has, and other ones come behind.
    let vregs = if is_kept { room.kept.lir.vregs } else { function.value_count() as u32 };
    let mut selection = Selection::of(plan, 1, vregs, &mut room.selected);
    let (body, done) = (1, plan.order.len() as u32 + 1);
    let out = &mut selection.out.lir;
    out.begin(None, 0);
    let first = machine.enter_loop(function, out)?;
    machine.end_entry(out);
    out.set_targets(0, &[(body, &[first])]);
    let mut item = first;
    while let Some(at) = selection.next() {
        if at == 0 {
            item = machine.item(function, &mut selection.out.lir)?;
            selection.begin(at, Some(item));
        } else {
            selection.begin_with_params(at);
        }
        let (block, _) = plan.order[at];
        let (ends, advances): (&[u32], bool) = match function.block(block).terminator {
            Terminator::Return(_) => (&[body, done], true),
            Terminator::Stop => (&[done], false),
            _ => {
                match is_kept && at > 0 {
                    true => selection.copy(at, &room.kept, machine.shared()),
                    false => selection.block(at, machine)?,
                }
                continue;
            }
        };
        let out = &mut selection.out.lir;
        machine.select(function, &plan.uses, block, out)?;
        let next = if advances { machine.next_item(function, block, out)? } else { item };
        machine.end(function, &plan.uses, block, out)?;
        for end in ends {
            let from = out.lists.len() as u32;
            out.lists.push(next);
            out.add_target(*end, from);
        }
    }
    let out = &mut selection.out.lir;
    let last = out.add_vreg();
    out.begin(Some(last), 0);
    machine.leave_loop(last, out);
    room.finish(machine, checked)
}

impl<O> Room<O> {
    /// Allocates registers, and emits.
    fn finish<M: Machine<Op = O>>(&mut self, machine: &mut M, checked: bool) -> Result<u32, GenerateError> {
        let lir = &self.selected.lir;
        if let Some(block) = lir.blocks.iter().position(|block| block.insts.is_empty()) {
            return Err(GenerateError::Empty(block as u32));
        }
        let allocation = self.allocator.allocate(lir, machine.registers(), machine.scratch(), checked)?;
        let written = allocation.written.without(machine.scratch());
        machine.begin(&Frame { slots: allocation.slots, written })?;
        Emitter::new(lir, allocation, machine).all()?;
        Ok(allocation.slots)
    }
}

/// The virtual register of a value.
fn vreg(value: &Value) -> Vreg {
    Vreg(value.index() as u32)
}

/// Analyses of a function that selection needs, computed once for all of its code.
pub struct Plan<'f> {
    function: &'f crate::ir::Function,
    uses: Uses,
    /// The blocks in the order of the code, each with the number of loops that it is in.
    order: Vec<(Block, u32)>,
    /// The places of blocks in the order.
    places: Side<Block, u32>,
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

impl<'f> Plan<'f> {
    /// The plan of a function. Its code is in the order of its layout, blocks that are not reached aside, or in reverse post-order if a
    /// block of the layout comes before one that dominates it.
    #[must_use]
    pub fn of(function: &'f crate::ir::Function) -> Self {
        Self::with_graph(function, &Graph::of(function))
    }

    /// The same for a function whose graph is known.
    #[must_use]
    pub fn with_graph(function: &'f crate::ir::Function, Graph { cfg, dominators }: &Graph) -> Self {
        let (loops, uses) = (Loops::of(cfg, dominators), Uses::of(function, cfg));
        let mut order: Vec<(Block, u32)> =
            function.layout.iter().filter_map(|block| Some((*block, cfg.position(*block)?))).collect();
        if !follow_dominators(&order, dominators) {
            order = cfg.order().iter().copied().zip(0..).collect();
        }
        let mut places = Side::sized(function.block_count());
        for (place, (block, position)) in (0..).zip(&mut order) {
            places[*block] = place;
            *position = loops.depth(*position);
        }
        Self { function, uses, order, places }
    }
}

/// The selection of a function's instructions, block by block.
struct Selection<'p, 'f, 'r, O> {
    plan: &'p Plan<'f>,
    /// Blocks before the function's, and loops around it.
    around: u32,
    selected: usize,
    out: &'r mut Selected<O>,
}

impl<'p, 'f, 'r, O> Selection<'p, 'f, 'r, O> {
    /// The selection of a function with so many blocks before it, and as many loops around it. Virtual registers that are no values have
    /// the numbers behind so many.
    fn of(plan: &'p Plan<'f>, around: u32, vregs: u32, out: &'r mut Selected<O>) -> Self {
        out.lir.begin_function(vregs, plan.order.len(), plan.function.inst_count());
        Self { plan, around, selected: 0, out }
    }

    /// The next block, by its place in the order.
    fn next(&mut self) -> Option<usize> {
        self.selected += 1;
        (self.selected <= self.plan.order.len()).then(|| self.selected - 1)
    }

    /// Begins a block with the parameters that it has in the function.
    fn begin_with_params(&mut self, at: usize) {
        let plan = self.plan;
        self.begin(at, plan.function.block(plan.order[at].0).params.iter().map(vreg));
    }

    fn begin(&mut self, at: usize, params: impl IntoIterator<Item = Vreg>) {
        self.out.lir.begin(params, self.plan.order[at].1 + self.around);
    }

    /// Selects the instructions of the block that was begun.
    fn block<M: Machine<Op = O>>(&mut self, at: usize, machine: &mut M) -> Result<(), Internal> {
        let (function, block, out) = (self.plan.function, self.plan.order[at].0, &mut self.out.lir);
        machine.select(function, &self.plan.uses, block, out)?;
        let ends = function.block(block).terminator.targets();
        for target in ends {
            let from = out.lists.len() as u32;
            for arg in &target.args {
                let arg = machine.argument(function, *arg, out)?;
                out.lists.push(arg);
            }
            out.add_target(self.plan.places[target.block] + self.around, from);
        }
        machine.end(function, &self.plan.uses, block, out)
    }

    /// The same by what was selected for the function alone. The virtual registers of the machine for all blocks differ.
    fn copy(&mut self, at: usize, kept: &Selected<O>, shared: Option<Vreg>)
    where
        O: Clone,
    {
        let renamed = kept.shared.zip(shared).map_or([Vreg(u32::MAX); 2], |(old, new)| [old, new]);
        self.out.lir.copy_block(&kept.lir, &kept.lir.blocks[at], renamed, self.around);
    }
}

/// Whether each block, by its position in the graph, comes after the one that dominates it immediately.
fn follow_dominators(order: &[(Block, u32)], dominators: &Dominators) -> bool {
    let mut came = vec![false; order.len()];
    order.iter().all(|&(_, position)| {
        came[position as usize] = true;
        came[dominators.parent(position) as usize]
    })
}
