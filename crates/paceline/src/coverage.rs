//! Coverage: how often each line, function and branch of programs ran.
//!
//! ```
//! use paceline::coverage::{Counting, Report};
//! use paceline::{Burst, FrameMeta, Host, LoadOptions, Object};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
//! let object = Object::open(path)?.with_coverage(Counting::Plain)?;
//! let collection = object.load(&LoadOptions::default())?;
//! let program = collection.program(None)?;
//! let mut burst = Burst::default();
//! burst.push(&[0; 60], FrameMeta::default())?;
//! program.run_burst(&mut burst, &mut Host::default())?;
//!
//! let counts = collection.coverage();
//! assert_eq!(counts[0].insns[0], 1);
//! assert!(Report::new(&counts).totals().lines.0 > 10);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use paceline_spec::{InitialValue, MapKind, MapSpec};

pub use paceline_coverage::{
    BranchCount, BranchLine, Counting, Counts, FileReport, FunctionReport, InstrumentError, LineReport,
    Report, Totals,
};

use crate::{Collection, Object};

/// Start of the name of the map that holds the counters: all of it, unless the object has a map of this name.
const MAP: &str = "paceline.coverage";

/// A program cannot have counters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("program {program}: {source}")]
pub struct CoverageError {
    /// Name of the program.
    pub program: String,
    /// Cause.
    pub source: InstrumentError,
}

/// The counters of an object's programs.
#[derive(Clone, Debug)]
pub(crate) struct Plans {
    /// Name of the map that holds them, which no other map of the object has.
    map: String,
    /// Each with the offset of its counters in the map's value.
    plans: Vec<(usize, paceline_coverage::Plan)>,
}

impl Object {
    /// The object with a map of counters ([`Collection::is_counters`]), and programs that count in it: [`Collection::coverage`] reads them. Programs that the
    /// object skips stay without, and so does an object that has counters.
    ///
    /// # Errors
    /// [`CoverageError`] names the first program that cannot have counters.
    pub fn with_coverage(mut self, counting: Counting) -> Result<Self, CoverageError> {
        if self.coverage.is_some() {
            return Ok(self);
        }
        let map = self.maps().len();
        let (mut plans, mut offset) = (Vec::new(), 0);
        for program in &mut self.specs_mut().programs {
            let instrumented = paceline_coverage::instrument(program, map, offset, counting);
            let (with_counters, plan) =
                instrumented.map_err(|source| CoverageError { program: program.name.clone(), source })?;
            *program = with_counters;
            let start = offset;
            offset += plan.bytes();
            plans.push((start, plan));
        }
        let name = free_name(self.maps());
        let mut spec = MapSpec::new(&name, MapKind::Array, 4, offset.max(8) as u32, 1);
        spec.contents = vec![(vec![0; 4], InitialValue::Bytes(Vec::new()))];
        self.specs_mut().maps.push(spec);
        self.coverage = Some(Arc::new(Plans { map: name, plans }));
        Ok(self)
    }
}

impl Collection {
    /// The counts of all programs, for their instructions as they were before they had counters; none without
    /// [`Object::with_coverage`].
    #[must_use]
    pub fn coverage(&self) -> Vec<Counts> {
        let Some(Plans { map, plans }) = self.object().coverage.as_deref() else { return Vec::new() };
        let value = self.map(map).and_then(|map| map.lookup(&[0; 4]).ok()).unwrap_or_default();
        let of_program = |(offset, plan): &(usize, paceline_coverage::Plan)| {
            plan.counts(value.get(*offset..*offset + plan.bytes()).unwrap_or_default())
        };
        plans.iter().map(of_program).collect()
    }

    /// Whether a map holds the counters of coverage, and is none of the object's own.
    #[must_use]
    pub fn is_counters(&self, map: &str) -> bool {
        self.object().coverage.as_ref().is_some_and(|plans| plans.map == map)
    }
}

/// The first name that no map has.
fn free_name(maps: &[MapSpec]) -> String {
    let is_free = |name: &String| maps.iter().all(|map| map.name != *name);
    let mut numbered = (2..).map(|number| format!("{MAP}.{number}"));
    Some(MAP.to_owned()).filter(is_free).or_else(|| numbered.find(is_free)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_collide_with_no_map_of_the_object() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
        let mut object = Object::open(path).unwrap();
        for name in [MAP, "paceline.coverage.2"] {
            object.specs_mut().maps.push(MapSpec::new(name, MapKind::Array, 4, 8, 1));
        }
        let collection =
            object.with_coverage(Counting::Plain).unwrap().load(&crate::LoadOptions::default()).unwrap();
        let program = collection.program(None).unwrap();
        let mut burst = crate::Burst::default();
        burst.push(&[0; 60], crate::FrameMeta::default()).unwrap();
        program.run_burst(&mut burst, &mut crate::Host::default()).unwrap();
        assert_eq!(collection.coverage()[0].insns[0], 1);
        assert!(collection.is_counters("paceline.coverage.3") && !collection.is_counters(MAP));
    }
}
