//! From a function in SSA form to the instructions of a machine.

use paceline_ir::arena::{Key, Side};
use paceline_ir::cfg::Dominators;
use paceline_ir::loops::Loops;
use paceline_ir::uses::Uses;
use paceline_ir::{Block, Graph, Terminator, Value};
use thiserror::Error;

use crate::allocate::{AllocateError, allocate};
use crate::emit::{Emitter, SlotMove};
use crate::lir::{Function, Vreg};
use crate::machine::{Frame, LoopMachine, Machine};

/// Code cannot be generated: a bug of a machine or of the allocator, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// Registers cannot be allocated.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// A block of the machine's has no instruction.
    #[error("block {0} has no instruction")]
    Empty(u32),
    /// A move between slots of the frame has no register to go through.
    #[error(transparent)]
    Slots(#[from] SlotMove),
}

/// Generates the code of a function, and returns the number of slots that its frame needs. The allocation is checked if that is asked for, as campaigns do, or in debug builds.
///
/// # Errors
/// The machine's instructions are not well formed, or need more registers than there are.
pub fn generate<M: Machine>(plan: &Plan<'_>, machine: &mut M, checked: bool) -> Result<u32, GenerateError> {
    let mut selection = Selection::of(plan, 0);
    while let Some(at) = selection.next() {
        match at {
            0 => selection.begin(at, None),
            _ => selection.begin_with_params(at),
        }
        selection.block(at, machine);
    }
    finish(selection.lir, machine, checked)
}

/// Generates the code of a loop with a function as its body, which ends early where the function [stops](Terminator::Stop); otherwise as
/// [`generate`].
///
/// # Errors
/// As [`generate`].
pub fn generate_loop<M: LoopMachine>(
    plan: &Plan<'_>,
    machine: &mut M,
    checked: bool,
) -> Result<u32, GenerateError> {
    let (function, mut selection) = (plan.function, Selection::of(plan, 1));
    let (body, done) = (1, plan.order.len() as u32 + 1);
    let out = &mut selection.lir;
    out.begin(None, 0);
    let first = machine.enter_loop(function, out);
    machine.end_entry(out);
    out.set_targets(0, &[(body, &[first])]);
    let mut item = first;
    while let Some(at) = selection.next() {
        if at == 0 {
            item = machine.item(function, &mut selection.lir);
            selection.begin(at, Some(item));
        } else {
            selection.begin_with_params(at);
        }
        let (block, _) = plan.order[at];
        let (ends, advances): (&[u32], bool) = match function.block(block).terminator {
            Terminator::Return(_) => (&[body, done], true),
            Terminator::Stop => (&[done], false),
            _ => {
                selection.block(at, machine);
                continue;
            }
        };
        machine.select(function, &plan.uses, block, &mut selection.lir);
        let next = if advances { machine.next_item(function, block, &mut selection.lir) } else { item };
        machine.end(function, &plan.uses, block, &mut selection.lir);
        for end in ends {
            let from = selection.lir.lists.len() as u32;
            selection.lir.lists.push(next);
            selection.lir.add_target(*end, from);
        }
    }
    let out = &mut selection.lir;
    let last = out.add_vreg();
    out.begin(Some(last), 0);
    machine.leave_loop(last, out);
    finish(selection.lir, machine, checked)
}

/// Allocates registers, and emits.
fn finish<M: Machine>(
    mut lir: Function<M::Op>,
    machine: &mut M,
    checked: bool,
) -> Result<u32, GenerateError> {
    if let Some(block) = lir.blocks.iter().position(|block| block.insts.is_empty()) {
        return Err(GenerateError::Empty(block as u32));
    }
    lir.compact();
    let allocation = allocate(&lir, machine.registers(), machine.scratch(), checked)?;
    let written = allocation.written.without(machine.scratch());
    machine.begin(&Frame { slots: allocation.slots, written });
    Emitter::new(&lir, &allocation, machine).all()?;
    Ok(allocation.slots)
}

/// The virtual register of a value.
fn vreg(value: &Value) -> Vreg {
    Vreg(value.index() as u32)
}

/// Analyses of a function that selection needs, computed once for all of its code.
pub struct Plan<'f> {
    function: &'f paceline_ir::Function,
    uses: Uses,
    /// The blocks in the order of the code, each with the number of loops that it is in.
    order: Vec<(Block, u32)>,
    /// The places of blocks in the order.
    places: Side<Block, u32>,
}

impl<'f> Plan<'f> {
    /// The plan of a function. Its code is in the order of its layout, blocks that are not reached aside, or in reverse post-order if a
    /// block of the layout comes before one that dominates it.
    #[must_use]
    pub fn of(function: &'f paceline_ir::Function) -> Self {
        Self::with_graph(function, &Graph::of(function))
    }

    /// The same for a function whose graph is known.
    #[must_use]
    pub fn with_graph(function: &'f paceline_ir::Function, Graph { cfg, dominators }: &Graph) -> Self {
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
struct Selection<'p, 'f, O> {
    plan: &'p Plan<'f>,
    /// Blocks before the function's, and loops around it.
    around: u32,
    selected: usize,
    lir: Function<O>,
}

impl<'p, 'f, O> Selection<'p, 'f, O> {
    /// The selection of a function with so many blocks before it, and as many loops around it.
    fn of(plan: &'p Plan<'f>, around: u32) -> Self {
        let lir = Function::sized(plan.function.value_count(), plan.order.len(), plan.function.inst_count());
        Self { plan, around, selected: 0, lir }
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
        self.lir.begin(params, self.plan.order[at].1 + self.around);
    }

    /// Selects the instructions of the block that was begun.
    fn block<M: Machine<Op = O>>(&mut self, at: usize, machine: &mut M) {
        let (function, block) = (self.plan.function, self.plan.order[at].0);
        machine.select(function, &self.plan.uses, block, &mut self.lir);
        let ends = function.block(block).terminator.targets();
        for target in ends {
            let from = self.lir.lists.len() as u32;
            for arg in &target.args {
                let arg = machine.argument(function, *arg, &mut self.lir);
                self.lir.lists.push(arg);
            }
            self.lir.add_target(self.plan.places[target.block] + self.around, from);
        }
        machine.end(function, &self.plan.uses, block, &mut self.lir);
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
