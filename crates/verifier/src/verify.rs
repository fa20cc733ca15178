//! The verification of a program: the checks before the exploration, the exploration, and the checks after it.

use paceline_btf::Btf;
use paceline_isa::{Code, DecodeError, Reg, RegSet, decode};
use paceline_spec::{MapSpec, ProgramSpec};

use crate::checker::{check_immediates, check_license};
use crate::depth::check_stack_depth;
use crate::env::{Env, Function, is_tail_call};
use crate::error::{Cause, Hint, Refusal};
use crate::exploration::Exploration;
use crate::facts::{FunctionFact, Verified, kept_maps};
use crate::limits::{MAX_INSTRUCTIONS, Options};
use crate::observe::Observer;
use crate::records::Records;

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
    check_license(program, &code)?;
    let env = Env::new(program, &code, maps, btf, options)?;
    check_immediates(&env)?;
    let mut exploration = Exploration::new(&env, observer.map(|observer| observer as &mut dyn Observer));
    exploration.run()?;
    let stats = exploration.stats();
    let mut records = exploration.records;
    records.loans.check(|function| env.function_name(function))?;
    let functions = function_facts(&env, &records);
    check_stack_depth(&env, &functions, records.roots.all())?;
    drop(env);
    Ok(Verified::new(program.clone(), kept_maps(maps), code, records.facts.into_insns(), functions, stats))
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

fn function_facts(env: &Env<'_>, records: &Records) -> Vec<FunctionFact> {
    let fact = |(index, function): (usize, &Function)| {
        let (start, end) = (function.start, function.end);
        let insns = || (start..end).filter_map(|slot| env.code.get(slot));
        let seen = records.facts.function(index);
        // The printed addresses may be derived from numbers, so any byte of the frame may be read.
        let printed = if seen.prints { u64::MAX } else { 0 };
        FunctionFact {
            start,
            end,
            stack: seen.stack,
            zeroed: records.reads.zeroed(index) | printed,
            shared: seen.shared | printed,
            prints: seen.prints,
            saved: saved_registers(env.code, start, end),
            is_callback: seen.is_callback,
            tail_calls: insns().any(is_tail_call),
            calls: insns().any(|insn| insn.is_call() && !is_tail_call(insn)),
        }
    };
    env.flow.functions.iter().enumerate().map(fact).collect()
}

/// The callee-saved registers that a range of code writes.
fn saved_registers(code: &Code, start: usize, end: usize) -> RegSet {
    let written = (start..end).filter_map(|slot| code.get(slot)).filter(|insn| !insn.is_call());
    let all = written.fold(RegSet::EMPTY, |all, insn| all.union(insn.writes()));
    all.intersection(RegSet::CALLEE_SAVED).minus(RegSet::of(Reg::R10))
}
