//! Copies of a program in the function of the chain.

use super::error::ChainError;
use super::fusion::{Entered, Fusion};
use super::relocate::Relocated;
use super::returns::Main;
use crate::ir::copy::{copy, zero_words};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Terminator};
use crate::ir::op::{Callee, Op, RunOp};
use crate::ir::types::Type;

/// A block that returned, and has no end yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) block: Block,
    /// The block of the program; `None` for the result of a program that was tail called.
    pub(super) of: Option<Block>,
    pub(super) result: Value,
    pub(super) slot: Option<u32>,
}

impl Fusion<'_> {
    /// Copies a program to where it is entered. Returns where it returns.
    pub(super) fn copy(&mut self, entered: &Entered) -> Result<Vec<Returned>, ChainError> {
        let body = self.begin(entered);
        let program = &self.programs[entered.part];
        let relocated = Relocated { part: entered.part, first: &program.first };
        let Main { function: main, reached, .. } = &program.part.main;
        let copies = copy(&mut self.function, main, reached, body, &[self.context], &relocated)?;
        let mut returns = Vec::new();
        for (&of, copy) in reached.iter().zip(copies) {
            let block = self.split_at_programs(copy, entered, &mut returns)?;
            let data = self.function.block(block);
            if let Terminator::Return(result) = data.terminator {
                returns.push(Returned { block, of: Some(of), result, slot: data.slot });
            }
        }
        Ok(returns)
    }

    /// What comes before the first operation of a program. Returns the block of that.
    fn begin(&mut self, entered: &Entered) -> Block {
        let around = self.programs[entered.part].part.around;
        let mut block = entered.block;
        if let Some((left, limit)) = entered.left.zip(self.rules.limit) {
            let zero = self.constant(block, 0);
            let (body, overrun) = (self.function.add_block(), self.function.add_block());
            self.branch_if_equal(block, [left, zero], [overrun, body]);
            self.end_counted(overrun, limit.verdict, limit.counter);
            block = body;
        }
        if around.begins {
            let begin = RunOp::Begin { program: entered.part as u32, area: around.area };
            self.function.append(block, Op::Run(begin), None);
        }
        let zeroed = self.main(entered.part).function.zeroed_words();
        zero_words(&mut self.function, block, zeroed);
        block
    }

    /// Ends a block after each of its tail calls: the program ends with the result of the other one, if there is one. Returns the block
    /// in which it goes on otherwise, with the end that the block had.
    fn split_at_programs(
        &mut self,
        mut block: Block,
        entered: &Entered,
        returns: &mut Vec<Returned>,
    ) -> Result<Block, ChainError> {
        let is_program = |function: &Function, inst: &Inst| {
            matches!(function.inst(*inst).op, Op::Call { callee: Callee::Program, .. })
        };
        loop {
            let mut insts = self.function.block(block).insts.iter();
            let Some(at) = insts.position(|inst| is_program(&self.function, inst)) else { return Ok(block) };
            let call = *self.function.inst(self.function.block(block).insts[at]);
            let result = call.result.ok_or(ChainError::Undefined(entered.part))?;
            let goes_on = self.function.split(block, at + 1);
            let ended = self.function.add_block();
            let none = self.constant(block, Callee::NO_PROGRAM);
            self.branch_if_equal(block, [result, none], [goes_on, ended]);
            returns.push(Returned { block: ended, of: None, result, slot: call.slot });
            block = goes_on;
        }
    }

    pub(super) fn constant(&mut self, block: Block, value: u64) -> Value {
        self.function.append_value(block, Op::constant(Type::I64, value), None)
    }
}
