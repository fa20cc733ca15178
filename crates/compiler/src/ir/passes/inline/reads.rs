//! Which parts of a frame calls read that are a part of it now.
//!
//! Of a call it was known what it reads of the stack of its function. What it reads of the stacks of functions further out was only known
//! to be among their shared words.

use paceline_verifier::StackFact;

use super::frame::Frame;
use crate::ir::arena::Side;
use crate::ir::effects::Classes;
use crate::ir::entity::{Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{Callee, Op};
use crate::ir::types::Kind;

/// Computes the shared words of a function in which others were inlined, and what calls in those read. Words that no function reads any
/// more which is called are not shared.
pub(super) fn update(function: &mut Function, copied: &[(Inst, Frame)]) {
    let mut own = Side::default();
    copied.iter().for_each(|(inst, frame)| own[*inst] = Some(frame));
    let calls: Vec<(Inst, Option<&Frame>)> = function
        .layout
        .iter()
        .flat_map(|block| &function.block(*block).insts)
        .filter(|inst| matches!(function.inst(**inst).op, Op::Call { .. }))
        .map(|inst| (*inst, own[*inst]))
        .collect();
    let shared = calls.iter().filter(|(inst, _)| runs_function(function, *inst));
    let all = copied.iter().fold(function.shared, |all, (_, frame)| all | frame.shared | frame.outer);
    let shared = if shared.count() > 0 { all } else { 0 };
    function.shared = shared;
    for (inst, frame) in calls {
        let words = frame.map_or(0, |frame| read(function, inst, frame.outer));
        if words != 0 {
            let facts = &mut function.calls[inst];
            let end = -8 * words.trailing_zeros().cast_signed() as i16;
            let start = -8 * (64 - words.leading_zeros()).cast_signed() as i16;
            facts.stack_read = Some(match facts.stack_read {
                Some(read) => StackFact { start: read.start.min(start), end: read.end.max(end) },
                None => StackFact { start, end },
            });
        }
    }
}

/// Whether a function of the program runs in a call.
fn runs_function(function: &Function, inst: Inst) -> bool {
    let callee = matches!(function.inst(inst).op, Op::Call { callee: Callee::Function(_), .. });
    callee || function.calls[inst].callback.is_some()
}

/// The words among some that a call may read by its arguments.
fn read(function: &Function, inst: Inst, words: u64) -> u64 {
    let op = &function.inst(inst).op;
    let Op::Call { args, .. } = op else { return 0 };
    if words == 0 || !op.effects().reads.intersects(Classes::STACK) {
        return 0;
    }
    args.as_slice().iter().fold(0, |read, arg| read | from(function, *arg, words))
}

/// The words among some that may be read from an address on.
fn from(function: &Function, address: Value, words: u64) -> u64 {
    match function.value(address).kind {
        Kind::Context | Kind::Packet | Kind::PacketEnd | Kind::Map | Kind::MapValue => return 0,
        Kind::Stack | Kind::CallerStack | Kind::Memory | Kind::Unknown => {}
    }
    if function.as_const(address).is_some() {
        return 0;
    }
    let Some(Op::StackAddress { offset }) = function.op_of(address) else { return words };
    // Those at the address and above, as far as there are no others between them.
    let number = u32::try_from((-1 - offset).div_euclid(8)).ok();
    let upto = number.filter(|number| *number < 64).map(|number| u64::MAX >> (63 - number));
    upto.map_or(0, |upto| {
        let below = words & upto;
        let gap = (!words & upto).checked_ilog2();
        gap.map_or(below, |gap| below & (u64::MAX << gap))
    })
}
