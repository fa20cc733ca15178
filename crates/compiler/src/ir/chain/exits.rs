//! Exits: what the results of programs lead to.

use paceline_isa::Condition;

use super::copy::Returned;
use super::error::ChainError;
use super::fusion::{Entered, Fusion};
use super::part::{Exit, Next};
use super::sites::deep_from;
use crate::ir::arena::Side;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Target, Terminator, ValueList};
use crate::ir::op::{BinaryOp, Op, RunOp};
use crate::ir::types::Type;

/// By the block of a return: where the copy of the next program begins that is for such returns.
type Copies = Side<Block, Option<Block>>;

impl Fusion<'_> {
    /// Has a copy of a program go on where its returns lead to.
    pub(super) fn leave_all(&mut self, entered: &Entered, returns: &[Returned]) -> Result<(), ChainError> {
        let copies = self.specialized_copies(entered)?;
        for returned in returns {
            let (block, finished) = (self.finish(entered.part, returned), returned.result);
            self.leave(entered, Returned { block, ..*returned }, finished, &copies)?;
        }
        Ok(())
    }

    /// What a program does at each of its ends. Returns the block after that.
    fn finish(&mut self, part: usize, returned: &Returned) -> Block {
        let mut block = returned.block;
        if self.main(part).tail_calls
            && let Some(fault) = self.function.append(block, Op::Run(RunOp::Fault), returned.slot)
        {
            let zero = self.constant(block, 0);
            let (stopped, goes_on) = (self.function.add_block(), self.function.add_block());
            self.branch_if_equal(block, [fault, zero], [goes_on, stopped]);
            self.function.terminate(stopped, Terminator::Stop, returned.slot);
            block = goes_on;
        }
        if self.programs[part].part.around.finishes {
            self.function.append(block, Op::Run(RunOp::Finish), returned.slot);
        }
        block
    }

    /// Copies of next programs for returns that are deep in this one: by return, the block in which its copy begins.
    fn specialized_copies(&mut self, entered: &Entered) -> Result<Copies, ChainError> {
        let mut copies = Copies::default();
        if !entered.specialized || self.rules.limit.is_some() {
            return Ok(copies);
        }
        let (exits, sites) = (&self.programs[entered.part].exits, &self.main(entered.part).sites);
        let next = |result: u64| match exits.of(result)?.next {
            Next::Program(next) => Some(next),
            Next::End(_) => None,
        };
        let mut programs: Vec<usize> = sites.iter().filter_map(|site| next(site.result)).collect();
        programs.sort_unstable();
        programs.dedup();
        for program in programs {
            let leading = || sites.iter().filter(|site| next(site.result) == Some(program));
            let size = self.programs.get(program).ok_or(ChainError::NoProgram(program))?.part.main.size;
            let from = deep_from(leading().map(|site| site.depth));
            let Some(from) = from.filter(|_| size <= self.budget) else { continue };
            self.budget -= size;
            let block = self.enter(program, true)?;
            leading().filter(|site| site.depth >= from).for_each(|site| copies[site.block] = Some(block));
        }
        Ok(copies)
    }

    /// Ends a block by the result of a program.
    fn leave(
        &mut self,
        entered: &Entered,
        returned: Returned,
        result: Value,
        copies: &Copies,
    ) -> Result<(), ChainError> {
        let exits = &self.programs[entered.part].exits;
        let Returned { block, of, slot, .. } = returned;
        let copy = of.and_then(|site| copies[site]);
        if let Some(known) = self.function.as_const(result) {
            return match exits.of(known) {
                Some(exit) => self.take(entered, block, exit, copy),
                None => {
                    self.end_with(block, known as u32);
                    Ok(())
                }
            };
        }
        if let Some(next) = exits.only_next().filter(|_| !self.rules.counts) {
            return self.take(entered, block, Exit { next, counter: 0 }, None);
        }
        let (mut at, low) = (block, Op::Truncate { arg: result });
        let low = self.function.append_value(at, low, slot);
        for (case, exit) in &exits.cases {
            let (matches, rest) = (self.function.add_block(), self.function.add_block());
            self.branch(at, Condition::Eq, low, *case, [matches, rest]);
            self.take(entered, matches, *exit, None)?;
            at = rest;
        }
        if let Some(last) = exits.own {
            let own = match last {
                u32::MAX => at,
                _ => {
                    let (own, rest) = (self.function.add_block(), self.function.add_block());
                    self.branch(at, Condition::Le, low, last, [own, rest]);
                    at = rest;
                    own
                }
            };
            self.function.terminate(own, Terminator::Return(result), slot);
            if last == u32::MAX {
                return Ok(());
            }
        }
        self.take(entered, at, exits.other, None)
    }

    /// Ends a block by an exit, which may have a copy of the next program for itself.
    fn take(
        &mut self,
        entered: &Entered,
        block: Block,
        exit: Exit,
        copy: Option<Block>,
    ) -> Result<(), ChainError> {
        let next = match exit.next {
            Next::Program(next) => next,
            Next::End(verdict) => {
                self.end_counted(block, verdict, exit.counter);
                return Ok(());
            }
        };
        self.count(block, exit.counter);
        let target = match copy {
            Some(copy) => copy,
            None => self.enter_common(next)?,
        };
        let mut args = ValueList::new();
        if let Some(left) = entered.left {
            let one = self.constant(block, 1);
            let less = Op::Binary { op: BinaryOp::Sub, ty: Type::I64, args: [left, one] };
            args.extend(self.function.append(block, less, None));
        }
        self.function.terminate(block, Terminator::Jump(Target { block: target, args }), None);
        Ok(())
    }

    fn count(&mut self, block: Block, counter: u32) {
        if self.rules.counts {
            self.function.append(block, Op::Run(RunOp::Count { counter }), None);
        }
    }

    /// Ends the chain with a verdict, which is counted.
    pub(super) fn end_counted(&mut self, block: Block, verdict: u32, counter: u32) {
        self.count(block, counter);
        self.end_with(block, verdict);
    }

    /// Ends the chain with a verdict.
    fn end_with(&mut self, block: Block, verdict: u32) {
        let end = match self.ends.get(&verdict) {
            Some(end) => *end,
            None => {
                let end = self.function.add_block();
                let result = self.constant(end, verdict.into());
                self.function.terminate(end, Terminator::Return(result), None);
                self.ends.insert(verdict, end);
                end
            }
        };
        self.function.terminate(block, Terminator::Jump(Target::to(end)), None);
    }

    /// Ends a block by a comparison of the low half of a result with a number.
    fn branch(&mut self, block: Block, condition: Condition, low: Value, number: u32, [a, b]: [Block; 2]) {
        let number = self.function.append_value(block, Op::constant(Type::I32, number.into()), None);
        let targets = [Target::to(a), Target::to(b)];
        let branch = Terminator::Branch { condition, ty: Type::I32, args: [low, number], targets };
        self.function.terminate(block, branch, None);
    }

    /// Ends a block by a comparison of two values.
    pub(super) fn branch_if_equal(&mut self, block: Block, args: [Value; 2], [a, b]: [Block; 2]) {
        let targets = [Target::to(a), Target::to(b)];
        let branch = Terminator::Branch { condition: Condition::Eq, ty: Type::I64, args, targets };
        self.function.terminate(block, branch, None);
    }
}
