//! Main functions with returns of their own for each way to one.

use super::error::PartError;
use super::sites::{Depths, Site};
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::Block;
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::op::{Callee, Op};
use crate::ir::types::{STACK_BYTES, Type};

/// A main function.
#[derive(Clone, Debug)]
pub(super) struct Main {
    pub(super) function: Function,
    /// Its reached blocks in the order of its layout.
    pub(super) reached: Vec<Block>,
    /// Where it returns a known result.
    pub(super) sites: Vec<Site>,
    /// Whether a function of the program makes tail calls.
    pub(super) tail_calls: bool,
    /// Number of its operations.
    pub(super) size: usize,
}

impl Main {
    /// That of a program with these other functions.
    pub(super) fn of(mut function: Function, others: &[Function]) -> Result<Self, PartError> {
        let entry = function.entry().ok_or(PartError::Empty)?;
        let params = function.block(entry).params.len();
        if params > 1 || function.arguments.iter().any(|reg| *reg != paceline_isa::Reg::R1) {
            return Err(PartError::Parameters);
        }
        split(&mut function);
        let sites = Depths::of(&function).sites();
        let tail_calls = makes_tail_calls(&function) || others.iter().any(makes_tail_calls);
        let size = function.inst_count() + function.layout.len();
        let reached = Cfg::of(&function).reached(&function);
        Ok(Self { function, reached, sites, tail_calls, size })
    }

    /// Bytes of its stack with all of the words that are zeroed. What it prints may be anywhere on it.
    pub(super) fn stack(&self) -> u32 {
        match self.function.prints {
            true => STACK_BYTES.unsigned_abs(),
            false => self.function.stack.next_multiple_of(8),
        }
    }
}

fn makes_tail_calls(function: &Function) -> bool {
    let mut insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
    insts.any(|inst| matches!(function.inst(*inst).op, Op::Call { callee: Callee::TailCall, .. }))
}

/// A block that does nothing but return a number, which one depending on the edge to it, is there once for each edge with a known one.
fn split(function: &mut Function) {
    let cfg = Cfg::of(function);
    for &block in cfg.order().iter().skip(1) {
        let data = function.block(block);
        let Terminator::Return(result) = data.terminator else { continue };
        if !data.insts.iter().all(|inst| matches!(function.inst(*inst).op, Op::Const { .. })) {
            continue;
        }
        let (position, slot) = (data.params.iter().position(|param| *param == result), data.slot);
        let edges = cfg.edges(block);
        for &Edge { from, at } in edges.iter().filter(|_| position.is_some() || edges.len() > 1) {
            let args = &function.block(from).terminator.targets()[at].args;
            let given = position.map_or(Some(result), |position| args.get(position).copied());
            let Some(known) = given.and_then(|given| function.as_const(given)) else { continue };
            let own = function.add_block();
            if let Some(result) = function.append(own, Op::constant(Type::I64, known), slot) {
                function.terminate(own, Terminator::Return(result), slot);
                function.block_mut(from).terminator.targets_mut()[at] = Target::to(own);
            }
        }
    }
}
