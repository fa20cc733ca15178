//! The verification of a program: the checks before the walk, the walk, and those after it.

use paceline_btf::Btf;
use paceline_isa::{Code, DecodeError, decode};
use paceline_spec::{MapSpec, ProgramSpec};

use crate::cfg::{self, ControlFlow};
use crate::error::{Cause, Hint, Refusal};
use crate::facts::{self, FunctionFact, Verified, is_tail_call};
use crate::limits::{MAX_INSTRUCTIONS, Options};
use crate::observe::Observer;
use crate::walk::Walk;
use crate::{depth, step};

/// Verifies a program. `maps` are those of its object, `btf` the object's types, which global functions need.
///
/// # Errors
/// The reason why the program is refused.
pub fn verify(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
) -> Result<Verified, Box<Refusal>> {
    verify_with(program, maps, btf, options, None)
}

/// Like [`verify`], with an observer of the walk.
///
/// # Errors
/// The reason why the program is refused.
pub fn verify_observed(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Verified, Box<Refusal>> {
    verify_with(program, maps, btf, options, Some(observer))
}

fn verify_with(
    program: &ProgramSpec,
    maps: &[MapSpec],
    btf: Option<&Btf>,
    options: &Options,
    observer: Option<&mut dyn Observer>,
) -> Result<Verified, Box<Refusal>> {
    let slots = program.insns.len();
    if slots == 0 || slots > MAX_INSTRUCTIONS {
        return Err(Refusal::at(0, Cause::Length { slots }));
    }
    let code = decode(&program.insns).map_err(malformed)?;
    step::check_license(program, &code)?;
    let flow = ControlFlow::of(program, &code)?;
    let mut walk = Walk::new(program, &code, maps, btf, options, &flow);
    walk.observer = observer.map(|observer| observer as &mut dyn Observer);
    walk.check_immediates()?;
    walk_functions(&mut walk)?;
    step::check_loans(&mut walk)?;
    let functions = function_facts(&code, &flow, &walk);
    depth::check_stack_depth(&code, &flow, &functions, &walk.roots)?;
    let stats = walk.stats();
    let facts = walk.facts.into_insns();
    Ok(Verified::new(program.clone(), facts::kept_maps(maps), code, facts, functions, stats))
}

/// The refusal of a slot that does not decode.
fn malformed(error: DecodeError) -> Box<Refusal> {
    /// An indirect call as clang before 19 encodes it, with the register in a reserved field.
    const CALL_REGISTER: u8 = 0x8d;
    let is_call = matches!(error, DecodeError::Reserved { opcode: CALL_REGISTER, .. });
    let mut refusal = Refusal::at(error.slot(), Cause::Decode(error));
    refusal.hint = is_call.then_some(Hint::Optimize);
    refusal
}

/// Walks the main program, then every global function that was called and every timer callback.
fn walk_functions(walk: &mut Walk<'_>) -> Result<(), Box<Refusal>> {
    let mut done = 0;
    while let Some(&root) = walk.roots.get(done) {
        let state = step::entry_state(walk, root)?;
        walk.root = root;
        let start = walk.flow.functions.get(root.function()).map_or(0, |f| f.start);
        walk.explore(state, start)?;
        done += 1;
    }
    Ok(())
}

fn function_facts(code: &Code, flow: &ControlFlow, walk: &Walk<'_>) -> Vec<FunctionFact> {
    let fact = |(index, function): (usize, &cfg::Function)| {
        let (start, end) = (function.start, function.end);
        let insns = || (start..end).filter_map(|slot| code.get(slot));
        let stack = walk.stack_used.get(index).copied().unwrap_or_default();
        let prints = walk.prints.get(index).copied().unwrap_or_default();
        // The printed addresses may be derived from numbers, so any byte of the frame may be read.
        let printed = if prints { u64::MAX } else { 0 };
        FunctionFact {
            start,
            end,
            stack,
            zeroed: walk.reads.zeroed(index) | printed,
            shared: walk.stack_shared.get(index).copied().unwrap_or_default() | printed,
            prints,
            saved: facts::saved_registers(code, start, end),
            is_callback: walk.is_callback.get(index).copied().unwrap_or_default(),
            tail_calls: insns().any(is_tail_call),
            calls: insns().any(|insn| insn.is_call() && !is_tail_call(insn)),
        }
    };
    flow.functions.iter().enumerate().map(fact).collect()
}
