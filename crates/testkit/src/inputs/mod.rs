//! Inputs that are generated for programs: run on every engine, and against what is called unreachable.

mod mutants;
mod proofs;
mod properties;
mod sent;
mod trial;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::AnyEngine;
use fastrand::Rng;
use paceline::generate::{Confirmed, Generated, Goal, Input, Options, Side, generate};
use paceline::{LoadOptions, Object, ProgramSpec};
use sent::run_on;
use trial::{Bench, Done};

pub use mutants::{Mutants, mutants};
pub use proofs::{Proofs, proofs};

/// The sides of a program's branches, each proven reachable, unreachable or given up.
#[derive(Debug, Default)]
pub struct Examined {
    /// The generated inputs.
    pub generated: Generated,
    /// Runs on engines, and random runs.
    pub runs: u64,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
}

/// Generates inputs for a program, runs them on engines, which must agree with the plain interpreter, and then `trials` random inputs, half of them after other
/// packets, none of which may take a side that is called unreachable.
///
/// # Errors
/// Nothing can be generated; why.
pub fn examine(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
    engines: &[AnyEngine],
    (trials, rng): (usize, &mut Rng),
) -> Result<Examined, String> {
    let generated = generate(object, program, options).map_err(|error| paceline::with_causes(&error))?;
    let mut examined = Examined { generated, ..Examined::default() };
    for failure in &examined.generated.failures {
        examined.wrong.push(format!("{:?}: {}", failure.goal, failure.how));
    }
    for &engine in engines.iter().filter(|engine| **engine != AnyEngine::Plain) {
        on_engine(object, program, engine, &mut examined);
    }
    at_random(object, program, trials, rng, &mut examined);
    Ok(examined)
}

/// All inputs, with their goals.
fn every(generated: &Generated) -> impl Iterator<Item = (Goal, &Confirmed)> {
    let first = generated.reached.iter().map(|(goal, confirmed)| (*goal, confirmed));
    first.chain(generated.more.iter().map(|more| (more.goal, &more.confirmed)))
}

/// Runs all inputs on an engine, and notes those that fare otherwise.
fn on_engine(object: &Object, program: &ProgramSpec, engine: AnyEngine, examined: &mut Examined) {
    let inputs: Vec<_> = every(&examined.generated).map(|(goal, input)| (goal, input.clone())).collect();
    for (goal, confirmed) in inputs {
        let expected =
            (confirmed.verdict, confirmed.returned, &confirmed.bytes, confirmed.redirect.is_some());
        examined.runs += 1;
        match run_on(object, program, (engine, LoadOptions::default()), &confirmed.input) {
            Ok(Some((outcome, ..))) => {
                let found = (outcome.verdict, outcome.returned, &outcome.bytes, outcome.redirect.is_some());
                if found != expected {
                    let mut text = format!("{goal:?}: {engine} gives {:?}, plain {:?}", found.0, expected.0);
                    if found.2 != expected.2 {
                        let _ = write!(text, ", and other bytes");
                    }
                    examined.wrong.push(text);
                }
            }
            // The engine does not have something that the program needs.
            Ok(None) => return,
            Err(error) => examined.wrong.push(format!("{goal:?}: {engine}: {error}")),
        }
    }
}

/// Random runs, most of them of changed inputs that were generated; the first one that takes a side that is called unreachable is wrong.
fn at_random(object: &Object, program: &ProgramSpec, trials: usize, rng: &mut Rng, examined: &mut Examined) {
    let sides = examined.generated.unreachable.keys().filter_map(|goal| match goal {
        Goal::Side(side) => Some(*side),
        _ => None,
    });
    let unreachable: BTreeSet<Side> = sides.collect();
    if unreachable.is_empty() {
        return;
    }
    let known: Vec<Input> =
        every(&examined.generated).map(|(_, confirmed)| confirmed.input.clone()).collect();
    let Some(bench) = Bench::new(object, program) else { return };
    for _ in 0..trials {
        let trial = bench.trial(&known, rng);
        let Some(Done { packets, sides, .. }) = bench.run(&trial, false) else { continue };
        examined.runs += packets;
        if let Some(side) = sides.intersection(&unreachable).next() {
            examined.wrong.push(format!("{side:?}: called unreachable, taken by {trial:?}"));
            return;
        }
    }
}
