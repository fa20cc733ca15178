//! The numbers of a program in those of all programs.

use paceline_verifier::state::MapRef;
use paceline_verifier::{CallbackFact, MapFact};

use super::error::ChainError;
use super::part::First;
use crate::ir::arena::Key;
use crate::ir::copy::{Relocation, Undefined};
use crate::ir::entity::FuncId;
use crate::ir::function::Function;
use crate::ir::op::{Address, Callee, Op};
use crate::ir::types::{CallFacts, Region};

/// A main function of a program in that of the chain, where its tail calls are calls.
pub(super) struct Relocated<'a> {
    /// Position of the program.
    pub(super) part: usize,
    pub(super) first: &'a First,
}

impl Relocation for Relocated<'_> {
    type Error = ChainError;

    fn op(&self, of: &mut Op) -> Result<(), ChainError> {
        op(of, self.first).ok_or(ChainError::MainIsCalled(self.part))?;
        if let Op::Call { callee: callee @ Callee::TailCall, .. } = of {
            *callee = Callee::Program;
        }
        Ok(())
    }

    fn facts(&self, of: &CallFacts) -> CallFacts {
        facts(of, self.first)
    }

    fn slot(&self, slot: u32) -> u32 {
        slot + self.first.slot
    }

    fn undefined(&self, _: Undefined) -> ChainError {
        ChainError::Undefined(self.part)
    }
}

/// A function other than the main one; `None` if it refers to that.
pub(super) fn function(from: &Function, first: &First) -> Option<Function> {
    let mut function = from.clone();
    function.slot += first.slot;
    let insts = function.layout.iter().flat_map(|block| function.block(*block).insts.clone());
    for inst in insts.collect::<Vec<_>>() {
        let data = &mut function.insts[inst];
        op(&mut data.op, first)?;
        data.slot = data.slot.map(|slot| slot + first.slot);
        if matches!(data.op, Op::Call { .. }) {
            let facts = facts(&function.calls[inst], first);
            if facts != CallFacts::default() {
                function.calls[inst] = facts;
            }
        }
    }
    for block in function.blocks.values_mut() {
        block.slot = block.slot.map(|slot| slot + first.slot);
    }
    Some(function)
}

fn of_function(function: FuncId, first: &First) -> Option<FuncId> {
    Some(FuncId::new(first.function + function.index().checked_sub(1)?))
}

const fn map(map: MapRef, first: &First) -> MapRef {
    MapRef { index: map.index + first.map, ..map }
}

/// Changes the numbers in an operation; `None` if it refers to the main function.
fn op(op: &mut Op, first: &First) -> Option<()> {
    match op {
        Op::Address(Address::Map(index) | Address::MapValue { map: index, .. }) => *index += first.map,
        Op::Address(Address::Function(function)) | Op::Call { callee: Callee::Function(function), .. } => {
            *function = of_function(*function, first)?
        }
        Op::Call { callee: Callee::Kfunc { index, .. }, .. } => *index += first.kfunc,
        Op::Call { callee: Callee::LookUp { map }, .. } => *map += first.map,
        Op::ContextLoad { offset, .. } | Op::ContextStore { offset, .. } => *offset += first.context,
        other => {
            if let Some(access) = other.access_mut() {
                access.region = match access.region {
                    Region::MapValue(of) => Region::MapValue(map(of, first)),
                    Region::Constant(of) => Region::Constant(map(of, first)),
                    region => region,
                };
            }
        }
    }
    Some(())
}

/// Facts of a call.
fn facts(facts: &CallFacts, first: &First) -> CallFacts {
    let of_map = |fact| match fact {
        MapFact::Always(of) => MapFact::Always(map(of, first)),
        MapFact::Different => MapFact::Different,
    };
    let of_callback = |fact| match fact {
        CallbackFact::Always(slot) => CallbackFact::Always(slot + first.slot),
        CallbackFact::Different => CallbackFact::Different,
    };
    CallFacts { map: facts.map.map(of_map), callback: facts.callback.map(of_callback), ..*facts }
}
