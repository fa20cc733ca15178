//! Basic blocks of a function: where they begin, and which follow.

use paceline_isa::Insn;
use paceline_verifier::{FunctionFact, InsnFact};

use super::error::{BuildCause, BuildError};
use crate::ir::entity::Block;
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::source::Source;

/// Whether a jump may be taken, and whether it may fall through.
fn ways(fact: &InsnFact) -> (bool, bool) {
    (fact.may_jump, fact.may_fall_through)
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next instruction, in the same block.
    Next(usize),
    /// One instruction, in another block.
    Jump(usize),
    /// The first if the condition holds, otherwise the second.
    Branch([usize; 2]),
    /// The first if the budget of rounds is exhausted, otherwise the second.
    MayGoto([usize; 2]),
    /// The next instruction, or a return of 0: a legacy packet load.
    PacketLoad(usize),
    /// The caller.
    Exit,
}

impl Flow {
    /// What follows the instruction of a slot, by the facts about it.
    fn of(source: &Source<'_>, range: &FunctionFact, slot: usize) -> Result<Self, BuildError> {
        let error = |cause| BuildError { slot, cause };
        let Some(insn) = source.code.get(slot) else {
            return Err(error(BuildCause::Flow(slot as i64)));
        };
        let reached = |target: i64| {
            let inside =
                usize::try_from(target).ok().filter(|target| (range.start..range.end).contains(target));
            inside
                .filter(|&target| source.is_reached(target) && source.code.get(target).is_some())
                .ok_or(error(BuildCause::Flow(target)))
        };
        let next = (slot + insn.slots()) as i64;
        // default: only jumps have a target, and only they ask for it.
        let target = insn.jump_target(slot).unwrap_or(next);
        Ok(match insn {
            Insn::Jump { .. } | Insn::JumpLong { .. } => Self::Jump(reached(target)?),
            Insn::JumpIf { .. } => match source.known(slot).map_or((false, false), ways) {
                (true, true) => Self::Branch([reached(target)?, reached(next)?]),
                (true, false) => Self::Jump(reached(target)?),
                (false, true) => Self::Jump(reached(next)?),
                (false, false) => return Err(error(BuildCause::Flow(next))),
            },
            Insn::MayGoto { .. } => match (reached(target), reached(next)) {
                (Ok(target), Ok(next)) => Self::MayGoto([target, next]),
                (Ok(target), Err(_)) => Self::Jump(target),
                (Err(_), next) => Self::Jump(next?),
            },
            Insn::LoadPacket { .. } => Self::PacketLoad(reached(next)?),
            Insn::Exit => Self::Exit,
            _ => Self::Next(reached(next)?),
        })
    }

    /// The slots that follow.
    fn targets(self) -> ([usize; 2], usize) {
        match self {
            Self::Next(next) | Self::Jump(next) | Self::PacketLoad(next) => ([next; 2], 1),
            Self::Branch(targets) | Self::MayGoto(targets) => (targets, 2),
            Self::Exit => ([0; 2], 0),
        }
    }
}

/// The blocks of a function.
pub(super) struct Blocks {
    /// By slot from the function's start: the block that begins there.
    begins: Vec<Option<Block>>,
    /// By slot from the function's start: what follows its instruction, if that is reached.
    flows: Vec<Option<Flow>>,
    start: usize,
    /// Blocks on the way from a jump to the next instruction that is counted, with the jump's slot and the next one.
    counted: Vec<(Block, usize, usize)>,
}

impl Blocks {
    /// Adds the blocks of reached instructions to an empty function, in the order of their slots, with ends that have the right targets
    /// and nothing else right.
    pub(super) fn add(
        source: &Source<'_>,
        range: &FunctionFact,
        function: &mut Function,
    ) -> Result<Self, BuildError> {
        let mut scan = Scan {
            source,
            range,
            flows: vec![None; range.end - range.start],
            leaders: vec![false; range.end - range.start],
        };
        scan.walk()?;
        // The entry has no predecessors.
        if std::mem::replace(&mut scan.leaders[0], true) {
            function.add_block();
        }
        function.reserve_blocks(scan.leaders.iter().filter(|leads| **leads).count() + 1);
        let begins = scan.leaders.iter().map(|&leads| leads.then(|| function.add_block())).collect();
        let mut blocks = Self { begins, flows: scan.flows, start: range.start, counted: Vec::new() };
        if let (Some(entry), Some(first)) = (function.entry(), blocks.at(range.start))
            && entry != first
        {
            function.terminate(entry, Terminator::Jump(Target::to(first)), None);
        }
        blocks.link(source, function)?;
        Ok(blocks)
    }

    /// The block that begins at a slot.
    pub(super) fn at(&self, slot: usize) -> Option<Block> {
        slot.checked_sub(self.start).and_then(|index| *self.begins.get(index)?)
    }

    /// What follows the instruction of a slot.
    pub(super) fn flow(&self, slot: usize) -> Result<Flow, BuildError> {
        let flow = slot.checked_sub(self.start).and_then(|index| *self.flows.get(index)?);
        flow.ok_or(BuildError { slot, cause: BuildCause::Flow(slot as i64) })
    }

    /// All blocks with their first slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Block)> {
        (self.start..).zip(&self.begins).filter_map(|(slot, block)| Some((slot, (*block)?)))
    }

    /// Blocks with nothing but a counter, each with the slot of the jump before it and of what follows.
    pub(super) fn counted(&self) -> &[(Block, usize, usize)] {
        &self.counted
    }

    /// The block between the jump of a slot and the next instruction, if that way is counted.
    pub(super) fn counted_after(&self, slot: usize) -> Option<Block> {
        self.counted.iter().find(|(_, jump, _)| *jump == slot).map(|(block, ..)| *block)
    }

    fn link(&mut self, source: &Source<'_>, function: &mut Function) -> Result<(), BuildError> {
        let counters = source.program.counters.as_deref();
        let mut counted = Vec::new();
        for (first, block) in self.iter() {
            let mut slot = first;
            let flow = loop {
                match self.flow(slot)? {
                    Flow::Next(next) if self.at(next).is_none() => slot = next,
                    flow => break flow,
                }
            };
            let target = |slot| {
                self.at(slot).map(Target::to).ok_or(BuildError { slot, cause: BuildCause::Flow(slot as i64) })
            };
            let mut on = |function: &mut Function, next| -> Result<Target, BuildError> {
                let to = target(next)?;
                if counters.is_none_or(|counters| counters.fall(slot).is_none()) {
                    return Ok(to);
                }
                let between = function.add_block();
                function.terminate(between, Terminator::Jump(to), None);
                counted.push((between, slot, next));
                Ok(Target::to(between))
            };
            let end = match flow {
                Flow::Next(next) | Flow::Jump(next) => Terminator::Jump(target(next)?),
                Flow::Branch([a, b]) | Flow::MayGoto([a, b]) => {
                    Terminator::MayGoto([target(a)?, on(function, b)?])
                }
                Flow::PacketLoad(next) => {
                    let outside = function.add_block();
                    Terminator::MayGoto([Target::to(outside), on(function, next)?])
                }
                Flow::Exit => Terminator::Unset,
            };
            function.terminate(block, end, None);
        }
        self.counted = counted;
        Ok(())
    }
}

/// A walk over the instructions that follow each other.
struct Scan<'a> {
    source: &'a Source<'a>,
    range: &'a FunctionFact,
    /// What follows the instructions that were seen.
    flows: Vec<Option<Flow>>,
    /// The slots that follow a jump.
    leaders: Vec<bool>,
}

impl Scan<'_> {
    fn walk(&mut self) -> Result<(), BuildError> {
        let start = self.range.start;
        let mut work = vec![start];
        while let Some(slot) = work.pop() {
            let mut next = Some(slot);
            while let Some(slot) = next.take().filter(|slot| self.flows[slot - start].is_none()) {
                let flow = Flow::of(self.source, self.range, slot)?;
                self.flows[slot - start] = Some(flow);
                if let Flow::Next(target) = flow {
                    next = Some(target);
                    continue;
                }
                let (targets, count) = flow.targets();
                for &target in &targets[..count] {
                    self.leaders[target - start] = true;
                    work.push(target);
                }
            }
        }
        Ok(())
    }
}
