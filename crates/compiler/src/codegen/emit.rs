//! Emission of blocks in their order, with the moves in between.
//!
//! Moves on the way from a block with several targets to one with several predecessors have a place of their own: right behind the block
//! if the other target is not what comes next, or behind all blocks. A block that does nothing but go on has no code.
//!
//! So no edge is split: a number that is an argument is made before the branch.

use std::ops::Range;

use crate::codegen::allocate::{Allocation, Loc, Move, Walk};
use crate::codegen::lir::{Function, Inst};
use crate::codegen::machine::{Label, Machine, Ways};
use crate::internal::Internal;

/// Moves with a place of their own.
#[derive(Clone, Copy)]
struct Stub<'a> {
    label: Label,
    moves: &'a [Move],
    to: Label,
}

/// How a block is reached.
#[derive(Clone, Copy)]
struct Entrance<'a> {
    /// Moves at its start, of the only edge to it.
    moves: &'a [Move],
    /// The label of the code that is reached there.
    label: Label,
    /// Number of edges to it.
    edges: u32,
    /// Whether it has code.
    is_emitted: bool,
}

pub(crate) struct Emitter<'a, M: Machine> {
    lir: &'a Function<M::Op>,
    allocation: &'a Allocation,
    machine: &'a mut M,
    /// By edge: moves on the way there. Empty if no edge has moves.
    edges: Vec<&'a [Move]>,
    /// By block.
    entrances: Vec<Entrance<'a>>,
    next_label: u32,
    /// Moves behind all blocks.
    stubs: Vec<Stub<'a>>,
    /// The labels of the targets of a block.
    targets: Vec<Label>,
    /// Moves around instructions.
    around: Walk<'a>,
}

impl<'a, M: Machine> Emitter<'a, M> {
    pub(crate) fn new(lir: &'a Function<M::Op>, allocation: &'a Allocation, machine: &'a mut M) -> Self {
        let count = lir.blocks.len() as u32;
        let entrance = |number| Entrance { moves: &[], label: Label(number), edges: 0, is_emitted: true };
        let (mut edges, count_of_edges) = (
            allocation.edges.walk(),
            match allocation.edges.starts.len() {
                0 => 0,
                _ => lir.targets.len() as u32,
            },
        );
        let mut emitter = Self {
            lir,
            allocation,
            machine,
            edges: (0..count_of_edges).map(|edge| edges.get(edge)).collect(),
            entrances: (0..count).map(entrance).collect(),
            next_label: count,
            stubs: Vec::new(),
            targets: Vec::with_capacity(2),
            around: allocation.around.walk(),
        };
        emitter.place_moves();
        emitter.thread();
        emitter
    }

    /// Moves on the way from a block to one of its targets.
    fn edge(&self, block: usize, target: usize) -> &'a [Move] {
        if self.edges.is_empty() {
            return &[];
        }
        let first = self.allocation.first_edges[block] as usize;
        self.edges[first + target]
    }

    /// Finds the moves at the starts of blocks.
    fn place_moves(&mut self) {
        let lir = self.lir;
        lir.targets.iter().for_each(|target| self.entrances[target.block as usize].edges += 1);
        for (number, block) in lir.blocks.iter().enumerate().filter(|(_, block)| block.targets.len() > 1) {
            for (at, target) in lir.targets_of(block).iter().enumerate() {
                let moves = self.edge(number, at);
                let entrance = &mut self.entrances[target.block as usize];
                if entrance.edges == 1 {
                    entrance.moves = moves;
                }
            }
        }
    }

    /// Finds the blocks that only go on, and where to. Later ones come first, so that a way forward ends where it has code; a way back
    /// ends where a block has the code of its jump.
    fn thread(&mut self) {
        for number in (1..self.lir.blocks.len()).rev() {
            let block = &self.lir.blocks[number];
            if self.goes_on(number, block.insts.clone()) {
                let target = self.lir.targets_of(block)[0].block as usize;
                let label =
                    if target <= number { Label(target as u32) } else { self.entrances[target].label };
                let entrance = &mut self.entrances[number];
                (entrance.label, entrance.is_emitted) = (label, false);
            }
        }
        for number in 1..self.lir.blocks.len() {
            if !self.entrances[number].is_emitted {
                let target = self.lir.targets_of(&self.lir.blocks[number])[0].block as usize;
                if target <= number {
                    self.entrances[target].is_emitted = true;
                }
            }
        }
    }

    /// Whether a block has one target and does nothing.
    fn goes_on(&self, number: usize, insts: Range<u32>) -> bool {
        let inst = insts.start;
        let allocation = self.allocation;
        insts.len() == 1
            && self.lir.blocks[number].targets.len() == 1
            && self.lir.insts[inst as usize].operands.is_empty()
            && self.entrances[number].moves.is_empty()
            && self.edge(number, 0).is_empty()
            && allocation.before(inst).is_empty()
            && allocation.after(inst).is_empty()
    }

    /// The first block with code from a number on.
    fn emitted_from(&self, number: usize) -> Option<usize> {
        let found = self.entrances[number..].iter().position(|entrance| entrance.is_emitted);
        found.map(|at| number + at)
    }

    pub(crate) fn all(mut self) -> Result<(), Internal> {
        let mut next = self.emitted_from(0);
        while let Some(number) = next {
            next = self.emitted_from(number + 1);
            self.block(number, next.map(|next| Label(next as u32)))?;
        }
        for stub in std::mem::take(&mut self.stubs) {
            self.stub(stub)?;
        }
        Ok(())
    }

    fn block(&mut self, number: usize, next: Option<Label>) -> Result<(), Internal> {
        let block = &self.lir.blocks[number];
        self.machine.bind(Label(number as u32));
        self.moves(self.entrances[number].moves)?;
        let end = block.insts.end - 1;
        let insts = &self.lir.insts[block.insts.start as usize..block.insts.end as usize];
        let (last, others) = insts.split_last().ok_or(Internal("a block has no instruction"))?;
        for (inst, data) in (block.insts.start..).zip(others) {
            // Most have no moves around them.
            if 2 * inst + 1 < self.around.next() {
                self.plain(data, Ways::default())?;
            } else {
                self.inst(inst, data, &[], Ways::default())?;
            }
        }
        if let [target] = self.lir.targets_of(block) {
            let moves = self.edge(number, 0);
            let targets = [self.entrances[target.block as usize].label];
            return self.inst(end, last, moves, Ways { targets: &targets, next });
        }
        let mut targets = std::mem::take(&mut self.targets);
        targets.clear();
        let first_stub = self.stubs.len();
        for (at, target) in self.lir.targets_of(block).iter().enumerate() {
            let moves = self.edge(number, at);
            let mut to = self.entrances[target.block as usize].label;
            if !moves.is_empty() && self.entrances[target.block as usize].moves.is_empty() {
                let label = Label(self.next_label);
                self.next_label += 1;
                self.stubs.push(Stub { label, moves, to });
                to = label;
            }
            targets.push(to);
        }
        // Moves come next where that saves a jump: on the way around a loop, or if none of the blocks comes next.
        let stubs = &self.stubs[first_stub..];
        let is_back = |stub: &Stub<'_>| stub.to.0 as usize <= number;
        let is_next = targets.iter().any(|target| Some(*target) == next);
        let here = stubs.iter().position(is_back).or((!is_next).then(|| stubs.len().wrapping_sub(1)));
        let here = here.filter(|at| *at < stubs.len()).map(|at| self.stubs.remove(first_stub + at));
        let next = here.map_or(next, |stub| Some(stub.label));
        self.inst(end, last, &[], Ways { targets: &targets, next })?;
        self.targets = targets;
        here.map_or(Ok(()), |stub| self.stub(stub))
    }

    /// Emits moves with a label, and the jump behind them.
    fn stub(&mut self, stub: Stub<'a>) -> Result<(), Internal> {
        self.machine.bind(stub.label);
        self.moves(stub.moves)?;
        self.machine.jump(stub.to);
        Ok(())
    }

    /// Emits an instruction after the moves before it, and those of the only edge from its block.
    fn inst(&mut self, inst: u32, data: &Inst<M::Op>, last: &[Move], ways: Ways<'_>) -> Result<(), Internal> {
        let before = self.around.get(2 * inst);
        self.moves(before)?;
        self.moves(last)?;
        self.plain(data, ways)?;
        let after = self.around.get(2 * inst + 1);
        self.moves(after)
    }

    /// Emits an instruction.
    #[inline]
    fn plain(&mut self, data: &Inst<M::Op>, ways: Ways<'_>) -> Result<(), Internal> {
        let assigned = &self.allocation.operands[data.operands.start as usize..data.operands.end as usize];
        self.machine.emit(&data.op, data.origin, assigned, ways)
    }

    #[inline]
    fn moves(&mut self, moves: &[Move]) -> Result<(), Internal> {
        if moves.is_empty() { Ok(()) } else { self.some_moves(moves) }
    }

    fn some_moves(&mut self, moves: &[Move]) -> Result<(), Internal> {
        for one in moves {
            match (one.to, one.from) {
                (Loc::Reg(to), Loc::Reg(from)) => self.machine.copy(to, from),
                (Loc::Reg(to), Loc::Slot(slot)) => self.machine.reload(to, slot),
                (Loc::Slot(slot), Loc::Reg(from)) => self.machine.spill(slot, from),
                (Loc::Slot(_), Loc::Slot(_)) => {
                    Err(Internal("a move between slots has no register to go through"))
                }
            }?;
        }
        Ok(())
    }
}
