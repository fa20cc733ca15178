//! Construction from a program and the facts about it, in one pass over its reached instructions.
//!
//! Functions come after those that they call; stack memory stays memory. A register that has no value on some way is 0 there: no
//! run uses it. A function's parameters are the argument registers that it reads, and a call gives those only; a function of which
//! only the address is used returns 0. An access has its region and its offsets from the verifier's fact. The context has
//! operations of its own, since its fields are not where the program's structure has them. A legacy packet load gives -1 outside of
//! the packet, and a branch returns 0 then. Of a program that nobody verified nothing is known: each access may go anywhere, and no
//! pass runs.

mod blocks;
mod error;
mod functions;
mod translate;

use paceline_isa::{Callee, Insn};
use paceline_verifier::{FunctionFact, Verified};

pub use self::error::{BuildCause, BuildError};
use crate::ir::arena::{Arena, Key};
use crate::ir::cfg::Cfg;
use crate::ir::function::Module;
use crate::ir::kinds;
use crate::ir::source::Source;
use functions::{Functions, Made};

/// Builds the functions of a verified program that a run can reach.
///
/// # Errors
/// [`BuildError`] for the first instruction that cannot be built.
pub fn build(verified: &Verified) -> Result<Module, BuildError> {
    let mut module = build_source(&Source::verified(verified))?;
    for function in module.functions.values_mut() {
        let cfg = Cfg::of(function);
        kinds::infer(function, &cfg);
    }
    Ok(module)
}

/// Builds the functions of a program that a run can reach, without kinds of values: the passes infer these. Passes rely on the program's
/// proof, so their result for an unverified program is unspecified.
///
/// # Errors
/// [`BuildError`] for the first instruction that cannot be built.
pub fn build_source(source: &Source<'_>) -> Result<Module, BuildError> {
    let mut program = Functions::of(source);
    for index in 0..program.facts.len() {
        function(&mut program, index)?;
    }
    let mut functions = Arena::default();
    for (made, fact) in program.made.into_iter().zip(&program.facts) {
        let Made::Done(function) = made else { return Err(recursion(fact)) };
        functions.push(*function);
    }
    Ok(Module { functions })
}

fn recursion(fact: &FunctionFact) -> BuildError {
    BuildError { slot: fact.start, cause: BuildCause::Recursion }
}

/// Builds a function after those that it calls, whose parameters it needs to know. Calls are at most eight deep.
fn function(program: &mut Functions<'_>, index: usize) -> Result<(), BuildError> {
    let fact = program.facts[index];
    match program.made[index] {
        Made::Done(_) => return Ok(()),
        Made::Begun => return Err(recursion(&fact)),
        Made::Not => program.made[index] = Made::Begun,
    }
    for slot in fact.start..fact.end {
        let Some(insn @ Insn::Call(Callee::Subprogram(_))) = program.source.code.get(slot) else {
            continue;
        };
        if let Some(called) = program.called(slot, insn) {
            function(program, called.index())?;
        }
    }
    program.made[index] = Made::Done(Box::new(translate::function(program, &fact)?));
    Ok(())
}
