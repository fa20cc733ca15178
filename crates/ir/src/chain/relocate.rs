//! The numbers of a program in those of all programs.

use paceline_verifier::state::MapRef;
use paceline_verifier::{CallbackFact, MapFact};

use super::part::First;
use crate::arena::Key;
use crate::entity::FuncId;
use crate::function::Function;
use crate::op::{Address, Callee, Op};
use crate::types::{CallFacts, Region};

/// A function other than the main one; `None` if it refers to that.
pub(super) fn function(from: &Function, first: &First) -> Option<Function> {
    let mut function = from.clone();
    function.slot += first.slot;
    let insts = function.layout.iter().flat_map(|block| function.block(*block).insts.clone());
    for inst in insts.collect::<Vec<_>>() {
        let data = &mut function.insts[inst];
        (data.op, data.slot) = (op(data.op, first)?, data.slot.map(|slot| slot + first.slot));
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

/// An operation; `None` if it refers to the main function.
pub(super) fn op(mut op: Op, first: &First) -> Option<Op> {
    match &mut op {
        Op::Address(Address::Map(index) | Address::MapValue { map: index, .. }) => *index += first.map,
        Op::Address(Address::Function(function)) | Op::Call { callee: Callee::Function(function), .. } => {
            *function = of_function(*function, first)?
        }
        Op::Call { callee: Callee::Kfunc { index, .. }, .. } => *index += first.kfunc,
        Op::Load { access, .. }
        | Op::Store { access, .. }
        | Op::Atomic { access, .. }
        | Op::LoadAcquire { access, .. }
        | Op::StoreRelease { access, .. } => {
            access.region = match access.region {
                Region::MapValue(of) => Region::MapValue(map(of, first)),
                Region::Constant(of) => Region::Constant(map(of, first)),
                region => region,
            };
        }
        _ => {}
    }
    Some(op)
}

/// Facts of a call.
pub(super) fn facts(facts: &CallFacts, first: &First) -> CallFacts {
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
