//! Main functions with returns of their own for each way to one.

use super::depth::{Depths, Site};
use super::{ChainError, Part};
use crate::cfg::{Cfg, Edge};
use crate::entity::Value;
use crate::function::{Def, Function, Target, Terminator};
use crate::op::{Callee, Op};
use crate::types::Type;

/// A main function.
pub(super) struct Main {
    pub(super) function: Function,
    /// Where it returns a known result.
    pub(super) sites: Vec<Site>,
    /// Whether a function of the program makes tail calls.
    pub(super) tail_calls: bool,
}

impl Main {
    pub(super) fn of(number: usize, part: &Part<'_>) -> Result<Self, ChainError> {
        let mut functions = part.module.functions.iter().map(|(_, function)| function);
        let mut function = functions.next().ok_or(ChainError::NoProgram(number))?.clone();
        let entry = function.entry().ok_or(ChainError::NoProgram(number))?;
        let params = function.block(entry).params.len();
        if params > 1 || function.arguments.iter().any(|reg| *reg != paceline_isa::Reg::R1) {
            return Err(ChainError::Parameters(number));
        }
        split(&mut function);
        let sites = Depths::of(&function).sites();
        let tail_calls = part.module.functions.iter().any(|(_, function)| makes_tail_calls(function));
        Ok(Self { function, sites, tail_calls })
    }

    /// Number of its operations.
    pub(super) fn size(&self) -> usize {
        self.function.inst_count() + self.function.layout.len()
    }
}

fn makes_tail_calls(function: &Function) -> bool {
    let mut insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
    insts.any(|inst| matches!(function.inst(*inst).op, Op::Call { callee: Callee::TailCall, .. }))
}

/// A block that does nothing but return one of several results is there once for each edge with a known one.
fn split(function: &mut Function) {
    let cfg = Cfg::of(function);
    for &block in cfg.order() {
        let data = function.block(block);
        let Terminator::Return(result) = data.terminator else { continue };
        let position = data.params.iter().position(|param| *param == result);
        let (Some(position), true, slot) = (position, data.insts.is_empty(), data.slot) else { continue };
        for &Edge { from, at } in cfg.edges(block) {
            let target = &function.block(from).terminator.targets()[at];
            let Some(known) = target.args.get(position).and_then(|arg| known(function, *arg)) else {
                continue;
            };
            let apart = function.add_block();
            if let Some(result) = function.append(apart, Op::constant(Type::I64, known), slot) {
                function.terminate(apart, Terminator::Return(result), slot);
                function.block_mut(from).terminator.targets_mut()[at] = Target::to(apart);
            }
        }
    }
}

/// The number that a value is.
pub(super) fn known(function: &Function, value: Value) -> Option<u64> {
    let Def::Result(inst) = function.value(value).def else { return None };
    match function.inst(inst).op {
        Op::Const { value, .. } => Some(value),
        Op::ZeroExtend { arg } | Op::Truncate { arg } => {
            known(function, arg).map(|value| Type::I32.cut(value))
        }
        _ => None,
    }
}
