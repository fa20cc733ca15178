//! Inlining: a call of a function of the program becomes a copy of that function, whose stack is below the caller's in the same frame. So
//! the other passes see what the two have in common, and no value is spilled for the call.
//!
//! A function is inlined that is called in one place, or whose copies make the program at most 60 operations longer. Helpers'
//! callbacks and functions with `may_goto`, tail calls or printed stacks stay, and so does a call for whose stack 512 bytes are too
//! few. The callee's stack has a place of its own, so that `mem2reg` finds its parts, or else the place right below its caller's.
//! Words that must be zero are stored where the copy begins. In the main program, what was on the stack of a caller is on its own;
//! in others that is not known (`mixed`). Instructions keep their slots, so places of faults and marks of code do.

mod addresses;
mod expand;
mod frame;
mod graph;
mod reads;

use crate::ir::arena::{Arena, Key, Side};
use crate::ir::check::CheckError;
use crate::ir::entity::FuncId;
use crate::ir::function::{Function, Module};
use crate::ir::op::{Address, Callee, Op};
use expand::Expansion;

/// Inlines functions, and removes those that are called no more.
///
/// # Errors
/// A function that is not well formed.
pub(super) fn run(module: &mut Module) -> Result<(), CheckError> {
    if module.functions.len() < 2 {
        return Ok(());
    }
    let inlined = graph::inlined(module);
    if !module.functions.keys().any(|id| inlined[id]) {
        return Ok(());
    }
    // Copies are those of functions as they were: what a copy calls is inlined there.
    let mut originals = std::mem::take(&mut module.functions);
    // Functions that are inlined, but not everywhere.
    let mut called: Side<FuncId, bool> = Side::sized(originals.len());
    let mut made: Vec<Option<Function>> = vec![None; originals.len()];
    let mut waiting: Vec<FuncId> = originals.keys().filter(|id| !inlined[*id]).collect();
    while let Some(id) = waiting.pop() {
        // Others are not copied, so what they were is not needed any more.
        let function = match inlined[id] {
            true => originals[id].clone(),
            false => std::mem::take(&mut originals[id]),
        };
        let expanded = Expansion::of(&originals, &inlined, id, function).all()?;
        for callee in expanded.calls {
            if !std::mem::replace(&mut called[callee], true) {
                waiting.push(callee);
            }
        }
        made[id.index()] = Some(expanded.function);
    }
    let mut numbers: Side<FuncId, FuncId> = Side::with_default(FuncId::new(0));
    let mut functions = Arena::default();
    for (id, function) in originals.keys().zip(made) {
        if let Some(function) = function {
            numbers[id] = functions.push(function);
        }
    }
    if functions.len() < originals.len() {
        functions.values_mut().for_each(|function| renumber(function, &numbers));
    }
    module.functions = functions;
    Ok(())
}

/// Gives functions the numbers that they have without those that were removed.
fn renumber(function: &mut Function, numbers: &Side<FuncId, FuncId>) {
    for inst in function.insts.values_mut() {
        if let Op::Call { callee: Callee::Function(of), .. } | Op::Address(Address::Function(of)) =
            &mut inst.op
        {
            *of = numbers[*of];
        }
    }
}
