//! The programs of a chain as one function: where a program returns, the next one begins.
//!
//! A program that several exits of another one lead to is there once for those that are deep in it, where most is known of the packet,
//! and once for all others. So passes see that what the first program has parsed need not be parsed again.
//!
//! Each program was optimized alone before. Its numbers of slots, maps, functions and fields of the context become those of all
//! programs, words of its stack that must be zero are stored where it begins, and a tail call of its main function is a call.
//! Copies of programs stay below twice the size of all programs. A program that makes tail calls is a chain of one in its loop over
//! a burst.

mod copy;
mod error;
mod exits;
mod fusion;
mod part;
mod relocate;
mod returns;
mod sites;

use crate::ir::function::{Module, Target, Terminator};
use crate::ir::op::Op;
use crate::ir::types::Type;
pub use error::{ChainError, PartError};
use fusion::Fusion;
pub use part::{Around, CONTEXT_BYTES, Exit, Exits, First, Limit, Next, Part, Placed, Rules};

/// Makes the programs of a chain one module: its main function runs them over the context, beginning with the first, and returns the
/// verdict at the end.
///
/// # Errors
/// [`ChainError`].
pub fn chain(programs: &[Placed<'_>], rules: &Rules) -> Result<Module, ChainError> {
    if programs.is_empty() {
        return Err(ChainError::NoProgram(0));
    }
    let mut fusion = Fusion::new(programs, rules);
    fusion.all()?;
    let mut module = Module::default();
    module.functions.push(fusion.function);
    for (number, program) in programs.iter().enumerate() {
        for function in &program.part.others {
            let relocated = relocate::function(function, &program.first);
            module.functions.push(relocated.ok_or(ChainError::MainIsCalled(number))?);
        }
    }
    debug_assert_eq!(crate::ir::check::check(&module), Ok(()), "{module}");
    Ok(module)
}

impl Fusion<'_> {
    /// Copies the first program, and all that are entered from it.
    fn all(&mut self) -> Result<(), ChainError> {
        let entry = self.function.entry().ok_or(ChainError::NoProgram(0))?;
        let runs = self.rules.limit.map(|limit| limit.runs);
        let left =
            runs.and_then(|runs| self.function.append(entry, Op::constant(Type::I64, runs.into()), None));
        let first = self.enter(0, true)?;
        let args = left.into_iter().collect();
        self.function.terminate(entry, Terminator::Jump(Target { block: first, args }), None);
        while let Some(entered) = self.waiting.pop() {
            let returns = self.copy(&entered)?;
            self.leave_all(&entered, &returns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
