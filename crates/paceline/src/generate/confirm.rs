//! Inputs, run before they count.

use std::cell::RefCell;
use std::collections::BTreeSet;

use paceline_analysis::symbolic::{Call, CallResult, Element, Goal, Input};
use paceline_engine::{Engine, Outcome, Program};
use paceline_spec::{InitialValue, MapSpec};

use super::found::{Confirmed, GenerateError, Missed};
use super::left::Target;
use super::run::{fill, put};
use super::watch::{Trace, trace};
use crate::load::Object;
use crate::load::{Collection, LoadOptions};

/// Runs inputs of a program on the plain interpreter, each with maps as the object has them.
pub(crate) struct Confirmer<'a> {
    pub(super) object: &'a Object,
    program: &'a str,
    /// Maps that are as the object has them, for trials: large maps take milliseconds to make.
    spare: RefCell<Option<Loaded>>,
}

/// A program with its maps.
struct Loaded {
    collection: Collection,
    program: Program,
}

impl<'a> Confirmer<'a> {
    pub(crate) fn new(object: &'a Object, program: &'a str) -> Self {
        Self { object, program, spare: RefCell::default() }
    }

    fn load(&self) -> Result<Loaded, GenerateError> {
        let collection = self.object.load(&LoadOptions::default().engine(Engine::Plain))?;
        let program = collection.program_unverified(Some(self.program))?;
        Ok(Loaded { collection, program })
    }

    /// Runs an input, which must meet a goal.
    pub(super) fn confirm(
        &self,
        input: &Input,
        goal: Goal,
    ) -> Result<Result<Confirmed, Missed>, GenerateError> {
        Ok(self.run(input)?.and_then(|(trace, confirmed)| match meets(goal, &confirmed, &trace) {
            true => Ok(confirmed),
            false => Err(Missed::OtherWay),
        }))
    }

    /// Runs an input, with maps of its own.
    pub(crate) fn run(&self, input: &Input) -> Result<Result<(Trace, Confirmed), Missed>, GenerateError> {
        Ok(self.run_on(&self.load()?, input))
    }

    /// The same with maps that may have been in use before, which are put back as they were.
    pub(super) fn trial(&self, input: &Input) -> Result<Result<(Trace, Confirmed), Missed>, GenerateError> {
        let spare = self.spare.borrow_mut().take();
        let loaded = match spare {
            Some(loaded) => loaded,
            None => self.load()?,
        };
        let ran = self.run_on(&loaded, input);
        if let Ok((trace, _)) = &ran
            && self.restore(&loaded.collection, input, trace)
        {
            *self.spare.borrow_mut() = Some(loaded);
        }
        Ok(ran)
    }

    /// Puts maps back as the object has them after a run: the elements that the input gave, and those that the run asked for. Whether that worked.
    fn restore(&self, collection: &Collection, input: &Input, trace: &Trace) -> bool {
        let is_simple = |spec: &MapSpec| {
            let kind = spec.kind;
            kind.is_array() || kind.is_keyed() && !kind.is_lru() || kind.has_indices() || spec.value_size == 0
        };
        if !self.object.maps().iter().all(is_simple) {
            return false;
        }
        let given = input.maps.iter().flat_map(|(map, all)| all.iter().map(|element| (*map, &element.key)));
        let asked = trace.asked.keys().map(|(map, key)| (*map, key));
        let touched: BTreeSet<(usize, &Vec<u8>)> = given.chain(asked).collect();
        touched.into_iter().all(|(map, key)| {
            let Some(spec) = self.object.maps().get(map) else { return false };
            let Some(now) = collection.map(&spec.name) else { return false };
            let initial = spec.contents.iter().find(|(other, _)| other == key).map(|(_, value)| value);
            let value = match initial {
                Some(InitialValue::Bytes(bytes)) => bytes.clone(),
                // Maps and programs stay as they are.
                Some(_) => return true,
                None if !spec.kind.is_array() => {
                    return now.lookup(key).is_err() || now.delete(key).is_ok();
                }
                None => Vec::new(),
            };
            if spec.frozen {
                return true;
            }
            let mut value = value;
            value.resize(spec.value_size as usize, 0);
            put(now, &Element { key: key.clone(), value }).is_ok()
        })
    }

    fn run_on(&self, loaded: &Loaded, input: &Input) -> Result<(Trace, Confirmed), Missed> {
        let Loaded { collection, program } = loaded;
        fill(self.object, collection, input)?;
        let trace = trace(self.object, collection, program, input)?;
        let Outcome { verdict, returned, redirect, bytes, metadata, .. } = trace.outcome.clone();
        let (events, traces) = trace.sent.clone();
        let confirmed = Confirmed {
            input: input.clone(),
            verdict,
            returned,
            bytes,
            metadata,
            redirect: redirect.map(|redirect| Target::of(collection, redirect)),
            sides: trace.sides.iter().copied().collect(),
            operations: trace.met.clone(),
            edges: trace.edges.clone(),
            last: trace.last,
            changes: trace.changes.clone(),
            events,
            traces,
            handover: trace.handover.clone(),
        };
        Ok((trace, confirmed))
    }
}

/// Whether a run meets a goal.
fn meets(goal: Goal, confirmed: &Confirmed, trace: &Trace) -> bool {
    match goal {
        // What a program does after a tail call to itself is another path.
        Goal::Path { .. } => {
            let input = &confirmed.input;
            trace.sides.starts_with(&input.sides) && are_made(&input.calls, &trace.calls)
        }
        _ => confirmed.meets(goal),
    }
}

/// Whether a run begins with calls as those of a path.
fn are_made(path: &[Call], run: &[Call]) -> bool {
    let is_same = |(path, run): (&Call, &Call)| {
        let leads = match (path.result, run.result) {
            (CallResult::Address, CallResult::Number(result)) => result != 0,
            (CallResult::Other, CallResult::Number(_)) => true,
            (path, run) => path == run,
        };
        path.slot == run.slot && leads
    };
    path.len() <= run.len() && path.iter().zip(run).all(is_same)
}
