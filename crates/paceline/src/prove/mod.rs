//! Properties that hold for all runs of a program, or inputs with which they do not.
//!
//! ```
//! use paceline::Object;
//! use paceline::prove::{Options, prove};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vlan.o");
//! let object = Object::open(path)?;
//! let property = "arp implies verdict != drop".parse()?;
//! let proof = prove(&object, &object.programs()[0], &property, &Options::default(), 1, &mut |_| {})?;
//! assert!(proof.is_complete() && proof.refuting.is_empty());
//! # Ok(())
//! # }
//! ```

mod check;
mod error;
mod formula;
mod parse;
mod property;
#[cfg(test)]
mod tests;
mod token;

use std::time::Instant;

use paceline_analysis::symbolic::{self as symbolic, Formula};
use paceline_engine::Host;
use paceline_spec::ProgramSpec;

pub use error::{Problem, PropertyError};
pub use paceline_analysis::symbolic::{Assumption, Bounds, Input, Options, Place, Progress};
pub use property::Property;

use crate::generate::{Confirmed, Confirmer, GenerateError};
use crate::load::Object;
use check::Run;

/// The reason why nothing is proved.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The program cannot be explored.
    #[error(transparent)]
    Program(#[from] GenerateError),
    /// The property is about something that the object does not have.
    #[error(transparent)]
    Property(#[from] PropertyError),
}

/// What is known of a property.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// Inputs with which it does not hold, each of another path, and run.
    pub refuting: Vec<Confirmed>,
    /// Inputs with which it should not have held and did: faults of this library.
    pub unconfirmed: Vec<Input>,
    /// Places at which paths were given up.
    pub left: Vec<Place>,
    /// Whether the search ended because so many inputs were found.
    pub is_cut: bool,
    /// Paths that were followed.
    pub paths: u64,
    /// What this holds for.
    pub bounds: Bounds,
    /// The premises of a proved property that never hold, so that it says nothing of any run.
    pub vacuous: Vec<String>,
}

impl Proof {
    /// Whether it holds with all other inputs, within the bounds of the options.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.unconfirmed.is_empty() && !self.is_cut
    }

    /// Whether it is proved.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.refuting.is_empty() && self.is_complete()
    }
}

/// Looks for inputs with which a property of a program's runs does not hold, up to `most`, and runs each on the plain interpreter.
///
/// # Errors
/// [`ProveError`].
pub fn prove(
    object: &Object,
    program: &ProgramSpec,
    property: &Property,
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Result<Proof, ProveError> {
    let start = Instant::now();
    let formula = formula_of(object, &property.root)?;
    let verified = object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))?;
    let options = Options { random: Host::randoms_of, ..*options };
    let found = symbolic::prove(&verified, object.maps(), &formula, &options, most, tell);
    let mut proof = Proof {
        is_cut: found.refuting.len() >= most,
        left: found.left,
        paths: found.paths,
        bounds: found.bounds,
        ..Proof::default()
    };
    let confirmer = Confirmer::new(object, &program.name);
    for input in found.refuting {
        match confirmer.run(&input)? {
            Ok((_, confirmed)) if !holds(object, property, &confirmed) => proof.refuting.push(confirmed),
            // It may have gone a way that is not modelled.
            _ => match input.guess.clone() {
                Some(place) if proof.left.contains(&place) => {}
                Some(place) => proof.left.push(place),
                None => proof.unconfirmed.push(input),
            },
        }
    }
    let premises = if proof.is_proved() { property.root.premises() } else { Vec::new() };
    for (all, text) in premises {
        let all = all.into_iter().map(|part| formula_of(object, part)).collect::<Result<_, _>>()?;
        let fails = Formula::Not(Box::new(Formula::All(all)));
        let options = Options { time: options.time.saturating_sub(start.elapsed()), ..options };
        let found = symbolic::prove(&verified, object.maps(), &fails, &options, 1, tell);
        if found.refuting.is_empty() && found.left.is_empty() {
            proof.vacuous.push(text);
        }
    }
    Ok(proof)
}

fn formula_of(object: &Object, expr: &property::Expr) -> Result<Formula, PropertyError> {
    formula::formula(expr, &|name| of_elements(object, name))
}

/// The index of a map of elements.
fn of_elements(object: &Object, name: &str) -> Result<usize, Problem> {
    let missing = || Problem::Map(name.to_owned());
    let index = object.maps().iter().position(|map| map.name == name).ok_or_else(missing)?;
    let kind = object.maps()[index].kind;
    match kind.is_ring_buffer() || kind.holds_events() {
        true => Err(Problem::Events { name: name.to_owned(), kind: kind.name() }),
        false => Ok(index),
    }
}

/// Whether a property holds for a run.
#[must_use]
pub fn holds(object: &Object, property: &Property, confirmed: &Confirmed) -> bool {
    let changes = |name: &str| {
        let map = object.maps().iter().position(|map| map.name == name);
        confirmed.changes.keys().any(|(changed, _)| Some(*changed) == map)
    };
    let run = Run {
        input: &confirmed.input.packet,
        output: &confirmed.bytes,
        verdict: confirmed.verdict,
        returned: confirmed.returned,
        changes: &changes,
    };
    run.holds(&property.root)
}
