//! Copies of a program in the function of the chain.

use std::cell::Cell;

use super::fusion::{Entered, Fusion};
use super::part::ChainError;
use super::relocate;
use crate::arena::Side;
use crate::cfg::Cfg;
use crate::entity::{Block, Inst, Value};
use crate::function::{Function, Target, Terminator};
use crate::op::{Callee, Op, RunOp};
use crate::types::{Access, CallFacts, Region, Span, Type};

/// A block that returned, and has no end yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) block: Block,
    /// The block of the program; `None` for the result of a program that was tail called.
    pub(super) of: Option<Block>,
    pub(super) result: Value,
    pub(super) slot: Option<u32>,
}

/// The values and blocks of the copy by those of the program.
#[derive(Default)]
struct Names {
    values: Side<Value, Option<Value>>,
    blocks: Side<Block, Option<Block>>,
    /// Whether one was asked for that there is none of.
    missing: Cell<bool>,
}

impl Names {
    /// The value of the copy.
    fn value(&self, value: Value) -> Value {
        self.values[value].unwrap_or_else(|| {
            self.missing.set(true);
            value
        })
    }

    fn block(&self, block: Block) -> Block {
        self.blocks[block].unwrap_or_else(|| {
            self.missing.set(true);
            block
        })
    }

    fn target(&self, target: &Target) -> Target {
        let args = target.args.iter().map(|arg| self.value(*arg)).collect();
        Target { block: self.block(target.block), args }
    }
}

impl Fusion<'_> {
    /// Copies a program to where it is entered. Returns where it returns.
    pub(super) fn copy(&mut self, entered: &Entered) -> Result<Vec<Returned>, ChainError> {
        let body = self.begin(entered);
        // Taken for the time of the copy, so that it is not cloned.
        let main = std::mem::take(&mut self.mains[entered.part].function);
        let copied = self.copy_of(&main, entered, body);
        self.mains[entered.part].function = main;
        copied
    }

    fn copy_of(
        &mut self,
        main: &Function,
        entered: &Entered,
        body: Block,
    ) -> Result<Vec<Returned>, ChainError> {
        let cfg = Cfg::of(main);
        // In their order, which code has that nothing is known of.
        let reached = |block: &&Block| cfg.position(**block).is_some();
        let blocks: Vec<Block> = main.layout.iter().filter(reached).copied().collect();
        let mut names = Names::default();
        for &block in &blocks {
            let is_entry = Some(block) == main.entry();
            let copy = if is_entry { body } else { self.function.add_block() };
            names.blocks[block] = Some(copy);
            for &param in &main.block(block).params {
                let data = main.value(param);
                let value = match is_entry {
                    true => self.context,
                    false => self.function.add_param(copy, data.ty, data.kind),
                };
                names.values[param] = Some(value);
            }
        }
        let mut copies: Vec<Vec<Inst>> = Vec::with_capacity(blocks.len());
        for &block in &blocks {
            let insts = main.block(block).insts.iter();
            copies.push(
                insts.map(|inst| self.create(main, *inst, entered, &mut names)).collect::<Result<_, _>>()?,
            );
        }
        let mut returns = Vec::new();
        for (&block, insts) in blocks.iter().zip(copies) {
            let mut at = names.block(block);
            for inst in insts {
                let op = self.function.inst(inst).op.map_operands(|value| names.value(value));
                self.function.set_op(inst, op);
                self.function.block_mut(at).insts.push(inst);
                if matches!(op, Op::Call { callee: Callee::Program, .. }) {
                    let result = self.function.inst(inst).result;
                    let result = result.ok_or(ChainError::Undefined(entered.part))?;
                    at = self.after_program(at, inst, result, &mut returns);
                }
            }
            let slot = main.block(block).slot.map(|slot| slot + self.parts[entered.part].first.slot);
            match &main.block(block).terminator {
                Terminator::Return(result) => {
                    let result = names.value(*result);
                    returns.push(Returned { block: at, of: Some(block), result, slot });
                }
                end => {
                    let mut end = end.clone();
                    end.targets_mut().iter_mut().for_each(|target| *target = names.target(target));
                    if let Terminator::Branch { args, .. } = &mut end {
                        *args = args.map(|arg| names.value(arg));
                    }
                    self.function.terminate(at, end, slot);
                }
            }
        }
        match names.missing.get() {
            true => Err(ChainError::Undefined(entered.part)),
            false => Ok(returns),
        }
    }

    /// What comes before the first operation of a program. Returns the block of that.
    fn begin(&mut self, entered: &Entered) -> Block {
        let part = &self.parts[entered.part];
        let mut block = entered.block;
        if let Some((left, limit)) = entered.left.zip(self.rules.limit) {
            let zero = self.constant(block, 0);
            let (body, overrun) = (self.function.add_block(), self.function.add_block());
            self.branch_if_equal(block, [left, zero], [overrun, body]);
            self.end_counted(overrun, limit.verdict, limit.counter);
            block = body;
        }
        if part.begins {
            let begin = RunOp::Begin { program: entered.part as u32, area: part.area };
            self.function.append(block, Op::Run(begin), None);
        }
        for offset in self.mains[entered.part].zeroed() {
            self.zero_word(block, offset);
        }
        block
    }

    /// Zeroes a word of the stack.
    fn zero_word(&mut self, block: Block, offset: i32) {
        let value = self.constant(block, 0);
        let address = self.function.append(block, Op::StackAddress { offset }, None);
        let access = Access { span: Some(Span { min: offset, max: offset }), ..Access::to(Region::Stack) };
        if let Some(base) = address {
            self.function.set_kind(base, crate::types::Kind::Stack);
            let size = paceline_isa::Size::Dw;
            self.function.append(block, Op::Store { size, access, base, offset: 0, value }, None);
        }
    }

    /// An instruction of the copy, with the operands of the program's.
    fn create(
        &mut self,
        main: &Function,
        inst: Inst,
        entered: &Entered,
        names: &mut Names,
    ) -> Result<Inst, ChainError> {
        let first = &self.parts[entered.part].first;
        let data = main.inst(inst);
        let mut op = relocate::op(data.op, first).ok_or(ChainError::MainIsCalled(entered.part))?;
        if let Op::Call { callee: callee @ Callee::TailCall, .. } = &mut op {
            *callee = Callee::Program;
        }
        let copy = self.function.create(op, data.slot.map(|slot| slot + first.slot));
        if let (Some(of), Some(result)) = (data.result, self.function.inst(copy).result) {
            self.function.set_kind(result, main.value(of).kind);
            names.values[of] = Some(result);
        }
        let facts = relocate::facts(&main.calls[inst], first);
        if facts != CallFacts::default() {
            self.function.calls[copy] = facts;
        }
        Ok(copy)
    }

    /// Ends a block after a tail call: the program ends with the result of the other one, if there is one. Returns the block in which it
    /// goes on otherwise.
    fn after_program(
        &mut self,
        block: Block,
        call: Inst,
        result: Value,
        returns: &mut Vec<Returned>,
    ) -> Block {
        let slot = self.function.inst(call).slot;
        let (ended, goes_on) = (self.function.add_block(), self.function.add_block());
        let none = self.constant(block, Callee::NO_PROGRAM);
        self.branch_if_equal(block, [result, none], [goes_on, ended]);
        returns.push(Returned { block: ended, of: None, result, slot });
        goes_on
    }

    pub(super) fn constant(&mut self, block: Block, value: u64) -> Value {
        // A number has a result.
        self.function.append(block, Op::constant(Type::I64, value), None).unwrap_or(self.context)
    }
}
