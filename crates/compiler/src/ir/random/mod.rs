//! Random modules and a machine for them: how passes are tested.
//!
//! A module keeps what the verifier would have proven: its accesses stay in their regions and its facts are true. So a pass may change
//! nothing of a [`run`].

mod generate;
mod helpers;
mod memory;

pub use generate::module;
pub use memory::{Memory, Outcome};

use thiserror::Error;

use crate::ir::check::{CheckError, check};
use crate::ir::function::Module;
use crate::ir::interpret::{Interpreter, RunError};
use crate::ir::passes::{Pass, PassError, Passes, optimize};

/// Operations that a run may have; random modules need fewer by far.
const BUDGET: u64 = 200_000;

/// Runs a module on memory made from a seed.
#[must_use]
pub fn run(module: &Module, seed: u64) -> Outcome {
    run_with(seed, |memory, context| Interpreter::new(module, memory, BUDGET).run([context, 0, 0, 0, 0]))
}

/// What something does with memory made from a seed and the address of the context.
pub fn run_with(seed: u64, run: impl FnOnce(&mut Memory, u64) -> Result<u64, RunError<u64>>) -> Outcome {
    let mut memory = Memory::new(seed);
    let result = run(&mut memory, memory::CONTEXT);
    memory.outcome(result)
}

/// Passes change what a module does, or the generator makes one that is not valid.
#[derive(Debug, Error)]
pub enum Difference {
    /// The random module is not valid, or does not run to its end.
    #[error("seed {seed}: the generator makes a wrong module: {cause}\n{module}")]
    Generator {
        /// The seed.
        seed: u64,
        /// What is wrong.
        cause: String,
        /// The module.
        module: Box<Module>,
    },
    /// A pass breaks the module.
    #[error("seed {seed}: {error}\nbefore:\n{before}\nafter:\n{after}")]
    Pass {
        /// The seed.
        seed: u64,
        /// The pass, and the rule.
        error: PassError,
        /// The module before the passes.
        before: Box<Module>,
        /// The module after it.
        after: Box<Module>,
    },
    /// A run leaves something else.
    #[error(
        "seed {seed}, input {input}: {expected:?}, and then {found:?}\nbefore:\n{before}\nafter:\n{after}"
    )]
    Run {
        /// The seed.
        seed: u64,
        /// Number of the input.
        input: u64,
        /// What a run leaves before the passes.
        expected: Box<Outcome>,
        /// What it leaves after them.
        found: Box<Outcome>,
        /// The module before the passes.
        before: Box<Module>,
        /// The module after them.
        after: Box<Module>,
    },
}

/// Runs the random module of a seed on some inputs before and after passes.
///
/// # Errors
/// They differ.
pub fn compare(seed: u64, passes: &Passes, inputs: u64) -> Result<(), Difference> {
    let before = module(seed);
    let wrong = |cause| Difference::Generator { seed, cause, module: Box::new(before.clone()) };
    check(&before).map_err(|error: CheckError| wrong(error.to_string()))?;
    let mut after = before.clone();
    if let Err(error) = optimize(&mut after, passes) {
        return Err(Difference::Pass { seed, error, before: Box::new(before), after: Box::new(after) });
    }
    for input in 0..inputs {
        // Inputs of different modules differ.
        let memory = seed.wrapping_add(input << 48);
        let (expected, found) = (run(&before, memory), run(&after, memory));
        if let Err(error) = expected.result {
            return Err(wrong(format!("{error:?}")));
        }
        if expected != found {
            let (expected, found) = (Box::new(expected), Box::new(found));
            let (before, after) = (Box::new(before), Box::new(after));
            return Err(Difference::Run { seed, input, expected, found, before, after });
        }
    }
    Ok(())
}

/// Sets of passes that a campaign tries, by their names: each alone, each after constants are folded, all, and all but each.
#[must_use]
pub fn pass_sets() -> Vec<(String, Passes)> {
    let none = Passes::none().checked(true);
    let all = Passes::default().checked(true);
    let sets = Pass::ALL.into_iter().flat_map(|pass| {
        [
            (pass.to_string(), none.with(pass, true)),
            (format!("fold and {pass}"), none.with(Pass::Fold, true).with(pass, true)),
            (format!("all but {pass}"), all.with(pass, false)),
        ]
    });
    sets.chain([("all".to_owned(), all)]).collect()
}
