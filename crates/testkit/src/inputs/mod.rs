//! Inputs that are generated for programs: run on every engine, and against what is called unreachable.

mod mutants;
mod trial;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fastrand::Rng;
use paceline::explain::Outcome;
use paceline::generate::{self, Generated, Input, Options, Side, generate};
use paceline::{Collection, Engine, LoadOptions, Object, ProgramSpec};

pub use mutants::{Mutants, mutants};
use trial::Bench;

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

/// Generates inputs for a program, runs them on engines, which must agree with the plain interpreter, and then `trials` random inputs, none of which may take
/// a side that is called unreachable.
///
/// # Errors
/// Nothing can be generated; why.
pub fn examine(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
    engines: &[Engine],
    (trials, rng): (usize, &mut Rng),
) -> Result<Examined, String> {
    let generated = generate(object, program, options).map_err(|error| error.to_string())?;
    let mut examined = Examined { generated, ..Examined::default() };
    for failure in &examined.generated.failures {
        examined.wrong.push(format!("slot {}: {}", describe(failure.side), failure.how));
    }
    for &engine in engines.iter().filter(|engine| **engine != Engine::Plain) {
        on_engine(object, program, engine, &mut examined);
    }
    at_random(object, program, trials, rng, &mut examined);
    Ok(examined)
}

fn describe(side: Side) -> String {
    format!("{} {}", side.slot, if side.taken { "taken" } else { "not taken" })
}

/// Runs all inputs on an engine, and notes those that fare otherwise.
fn on_engine(object: &Object, program: &ProgramSpec, engine: Engine, examined: &mut Examined) {
    for (side, confirmed) in &examined.generated.reached {
        let expected = (confirmed.verdict, confirmed.code, &confirmed.bytes, confirmed.redirect.is_some());
        examined.runs += 1;
        let options = LoadOptions::default().engine(engine);
        match run_on(object, program, options, &confirmed.input) {
            Ok(Some((outcome, _))) => {
                let found = (outcome.verdict, outcome.code, &outcome.bytes, outcome.redirect.is_some());
                if found != expected {
                    let mut text = format!(
                        "slot {}: {engine} gives {:?}, plain {:?}",
                        describe(*side),
                        found.0,
                        expected.0
                    );
                    if found.2 != expected.2 {
                        let _ = write!(text, ", and other bytes");
                    }
                    examined.wrong.push(text);
                }
            }
            // The engine does not have something that the program needs.
            Ok(None) => return,
            Err(error) => examined.wrong.push(format!("slot {}: {engine}: {error}", describe(*side))),
        }
    }
}

/// Runs an input, with maps of its own, which come back with the outcome; `None` where the engine lacks something that the program needs.
fn run_on(
    object: &Object,
    program: &ProgramSpec,
    options: LoadOptions,
    input: &Input,
) -> Result<Option<(Outcome, Collection)>, String> {
    let collection = object.load(&options).map_err(|error| error.to_string())?;
    let Ok(loaded) = collection.program(Some(&program.name)) else { return Ok(None) };
    generate::fill(object, &collection, input).map_err(|error| error.to_string())?;
    let mut host = generate::host(input);
    let mut burst = generate::burst(input).map_err(|error| error.to_string())?;
    host.arrive(&burst);
    loaded.run_burst(&mut burst, &mut host).map_err(|fault| fault.to_string())?;
    Ok(Some((generate::outcome(&burst), collection)))
}

/// Random runs, most of them of changed inputs that were generated; the first one that takes a side that is called unreachable is wrong.
fn at_random(object: &Object, program: &ProgramSpec, trials: usize, rng: &mut Rng, examined: &mut Examined) {
    let unreachable: BTreeSet<Side> = examined.generated.unreachable.keys().copied().collect();
    if unreachable.is_empty() {
        return;
    }
    let known: Vec<Input> = examined.generated.reached.values().map(|c| c.input.clone()).collect();
    let Some(bench) = Bench::new(object, program) else { return };
    for _ in 0..trials {
        let trial = bench.trial(&known, rng);
        let Some(sides) = bench.sides(&trial) else { continue };
        examined.runs += 1;
        if let Some(side) = sides.intersection(&unreachable).next() {
            examined.wrong.push(format!("slot {}: called unreachable, taken by {trial:?}", describe(*side)));
            return;
        }
    }
}
