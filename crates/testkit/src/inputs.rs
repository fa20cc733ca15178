//! Inputs that are generated for programs: run on every engine, and against what is called unreachable.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fastrand::Rng;
use paceline::explain::Outcome;
use paceline::generate::{self, Element, Generated, Input, Missed, Options, Side, generate};
use paceline::{Collection, Engine, LoadOptions, Object, ProgramSpec};

/// Longest packet of the random ones.
const LONGEST: usize = 1514;

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
        match run_on(object, program, engine, &confirmed.input) {
            Ok(Some(outcome)) => {
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

fn run_on(
    object: &Object,
    program: &ProgramSpec,
    engine: Engine,
    input: &Input,
) -> Result<Option<Outcome>, String> {
    let collection =
        object.load(&LoadOptions::default().engine(engine)).map_err(|error| error.to_string())?;
    let Ok(loaded) = collection.program(Some(&program.name)) else { return Ok(None) };
    generate::fill(object, &collection, input).map_err(|error| error.to_string())?;
    let mut host = generate::host(input);
    let mut burst = generate::burst(input).map_err(|error| error.to_string())?;
    host.arrive(&burst);
    loaded.run_burst(&mut burst, &mut host).map_err(|fault| fault.to_string())?;
    Ok(Some(generate::outcome(&burst)))
}

/// Runs random inputs, most of them changed ones of those that were generated.
fn at_random(object: &Object, program: &ProgramSpec, trials: usize, rng: &mut Rng, examined: &mut Examined) {
    let unreachable: BTreeSet<Side> = examined.generated.unreachable.keys().copied().collect();
    if unreachable.is_empty() {
        return;
    }
    let known: Vec<Input> = examined.generated.reached.values().map(|c| c.input.clone()).collect();
    for _ in 0..trials {
        let input = changed(object, &known, rng);
        let Ok(collection) = object.load(&LoadOptions::default().engine(Engine::Plain)) else { return };
        let Ok(sides) = sides(object, &collection, program, &input) else { continue };
        examined.runs += 1;
        if let Some(side) = sides.intersection(&unreachable).next() {
            examined.wrong.push(format!("slot {}: called unreachable, taken by {input:?}", describe(*side)));
            return;
        }
    }
}

fn sides(
    object: &Object,
    collection: &Collection,
    program: &ProgramSpec,
    input: &Input,
) -> Result<BTreeSet<Side>, Missed> {
    let Ok(loaded) = collection.program_unverified(Some(&program.name)) else { return Err(Missed::TooLong) };
    generate::fill(object, collection, input)?;
    generate::run(&loaded, input).map(|(_, sides)| sides)
}

/// A random input: one that is known, with some of its bytes and numbers changed, and elements that others have.
fn changed(object: &Object, known: &[Input], rng: &mut Rng) -> Input {
    let mut input = match known.len() {
        0 => Input { packet: vec![0; 60], ..Input::default() },
        len => known[rng.usize(..len)].clone(),
    };
    if rng.u8(..4) == 0 {
        input.packet.resize(rng.usize(1..=LONGEST), 0);
    }
    for _ in 0..rng.usize(..6) {
        let at = rng.usize(..input.packet.len());
        input.packet[at] = if rng.bool() { rng.u8(..) } else { input.packet[at] ^ 1 << rng.u8(..8) };
    }
    if let Some(other) = rng.choice(known)
        && rng.bool()
    {
        for (map, elements) in &other.maps {
            input.maps.entry(*map).or_insert_with(|| elements.clone());
        }
    }
    for elements in input.maps.values_mut() {
        for Element { value, .. } in elements.iter_mut().take(16) {
            if !value.is_empty() && rng.bool() {
                let at = rng.usize(..value.len());
                value[at] = rng.u8(..);
            }
        }
    }
    let is_target = |map: &usize| object.maps().get(*map).is_none_or(|map| !map.kind.holds_bytes());
    input.maps.retain(|map, _| !is_target(map));
    input.time_ns = rng.u64(..1 << 50) >> rng.u32(..50);
    input.seed = Some(rng.u64(..));
    input.ingress = rng.u32(..4);
    input.queue = rng.u16(..4);
    input
}
