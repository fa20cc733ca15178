//! Inputs, run before they count.

use std::collections::BTreeMap;

use paceline_explain::Outcome;
use paceline_frame::{Redirect, RedirectTarget};
use paceline_spec::MapSpec;
use paceline_symbolic::{Goal, Input};
use paceline_vm::Engine;

use super::run::{Trace, fill, trace};
use super::{Confirmed, GenerateError, Missed, Target};
use crate::{Collection, LoadOptions, Object};

/// Runs inputs of a program on the plain interpreter, each with maps of its own.
pub(super) struct Confirmer<'a> {
    pub(super) object: &'a Object,
    program: &'a str,
}

impl<'a> Confirmer<'a> {
    pub(super) fn new(object: &'a Object, program: &'a str) -> Self {
        Self { object, program }
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

    /// Runs an input.
    pub(super) fn run(&self, input: &Input) -> Result<Result<(Trace, Confirmed), Missed>, GenerateError> {
        let collection = self.object.load(&LoadOptions::default().engine(Engine::Plain))?;
        let program = collection.program_unverified(Some(self.program))?;
        if let Err(missed) = fill(self.object, &collection, input) {
            return Ok(Err(missed));
        }
        let trace = match trace(self.object, &collection, &program, input) {
            Ok(trace) => trace,
            Err(missed) => return Ok(Err(missed)),
        };
        let mut changes = BTreeMap::new();
        for ((map, key), before) in &trace.asked {
            let spec = self.object.maps().get(*map);
            let Some(now) = spec.and_then(|spec| collection.map(&spec.name)) else { continue };
            let after = now.lookup(key).ok();
            if after != *before {
                changes.insert((*map, key.clone()), after);
            }
        }
        let Outcome { verdict, code, redirect, bytes, .. } = trace.outcome.clone();
        let confirmed = Confirmed {
            input: input.clone(),
            verdict,
            code,
            bytes,
            redirect: redirect.map(|redirect| self.target(&collection, redirect)),
            sides: trace.sides.iter().copied().collect(),
            operations: trace.met.clone(),
            edges: trace.edges.clone(),
            last: trace.last,
            changes,
            events: trace.events.clone(),
        };
        Ok(Ok((trace, confirmed)))
    }

    /// The target of a redirect, which names a map that is gone after the run.
    fn target(&self, collection: &Collection, redirect: Redirect) -> Target {
        match redirect.target {
            RedirectTarget::Interface { ifindex } => Target::Interface(ifindex),
            RedirectTarget::Map { map, key } => {
                let is_it = |spec: &MapSpec| collection.map(&spec.name).is_some_and(|own| own.id() == map);
                let map = self.object.maps().iter().find(|spec| is_it(spec));
                Target::Element { map: map.map(|spec| spec.name.clone()).unwrap_or_default(), key }
            }
        }
    }
}

/// Whether a run meets a goal.
fn meets(goal: Goal, confirmed: &Confirmed, trace: &Trace) -> bool {
    match goal {
        // What a program does after a tail call to itself is another path.
        Goal::Path { .. } => trace.sides.starts_with(&confirmed.input.sides),
        _ => confirmed.meets(goal),
    }
}
