//! Combined stack depth of call chains (`check_max_stack_depth`).
//!
//! The number of chains may be exponential in the number of functions. For each function and chain length only the chain
//! with the deepest stack is kept.

use paceline_isa::Insn;

use crate::domain::state::MAX_STACK;
use crate::env::{Env, reaching};
use crate::error::{Cause, Hint, Refusal};
use crate::facts::FunctionFact;
use crate::limits::MAX_FRAMES;
use crate::records::Root;

/// Stack that may be used before a call that leads to a tail call (`check_max_stack_depth_subprog`).
const MAX_STACK_BEFORE_TAIL_CALL: u32 = 256;

/// The chain of calls to a function with the deepest stack.
#[derive(Clone, Copy)]
struct Chain {
    /// Bytes of stack that its callers use.
    before: u32,
    /// The call of the function, or its start.
    slot: usize,
}

/// Checks all chains of calls from the entry points.
pub(crate) fn check_stack_depth(
    env: &Env<'_>,
    functions: &[FunctionFact],
    walked: &[Root],
) -> Result<(), Box<Refusal>> {
    let mut is_later = vec![false; functions.len()];
    for root in walked {
        if let Root::Timer { function, .. } = *root {
            is_later[function] = true;
        }
    }
    // A timer callback has a stack of its own.
    let calls_now = |insn: &Insn, callee: usize| insn.is_call() || !is_later[callee];
    let calls: Vec<_> =
        (0..functions.len()).map(|function| env.flow.calls_of(env.code, function, calls_now)).collect();
    let callees: Vec<Vec<usize>> =
        calls.iter().map(|c| c.iter().map(|&(_, callee)| callee).collect()).collect();
    let has_tail_call = reaching(functions.iter().map(|f| f.tail_calls).collect(), &callees);
    let is_root = |index: usize| index == 0 || env.flow.functions[index].is_global || is_later[index];
    let start =
        |(index, f): (usize, &FunctionFact)| is_root(index).then_some(Chain { before: 0, slot: f.start });
    let mut chains: Vec<Option<Chain>> = functions.iter().enumerate().map(start).collect();
    for frames in 1..=MAX_FRAMES + 1 {
        if chains.iter().all(Option::is_none) {
            break;
        }
        let mut longer = vec![None; functions.len()];
        for (function, chain) in chains.iter().enumerate() {
            let Some(chain) = chain else { continue };
            let bytes = check(&functions[function], chain, frames, has_tail_call[function])?;
            for &(slot, callee) in &calls[function] {
                let most = longer[callee].map_or(0, |chain: Chain| chain.before);
                if longer[callee].is_none() || most < bytes {
                    longer[callee] = Some(Chain { before: bytes, slot });
                }
            }
        }
        chains = longer;
    }
    Ok(())
}

/// Stack bytes of a chain, including its last function.
fn check(
    function: &FunctionFact,
    chain: &Chain,
    frames: usize,
    has_tail_call: bool,
) -> Result<u32, Box<Refusal>> {
    let refuse = |cause, hint| Err(Box::new(Refusal { hint, ..*Refusal::at(chain.slot, cause) }));
    if frames > 1 && chain.before >= MAX_STACK_BEFORE_TAIL_CALL && has_tail_call {
        return refuse(Cause::TailCallStack(chain.before), Some(Hint::StackTooDeep));
    }
    let bytes = chain.before + function.stack.next_multiple_of(16);
    if bytes > MAX_STACK {
        return refuse(Cause::StackDepth { frames, bytes }, Some(Hint::StackTooDeep));
    }
    if frames > MAX_FRAMES {
        return refuse(Cause::CallDepth(frames), None);
    }
    Ok(bytes)
}
