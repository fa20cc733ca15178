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

pub use paceline_analysis::coverage::{
    BranchCount, BranchLine, Counting, Counts, FileReport, FunctionReport, InstrumentError, LineReport,
    Report, Totals,
};

use crate::load::Collection;
use crate::load::Object;
use crate::load::counters::Plans;

/// Start of the name of the map that holds the counters: all of it, unless the object has a map of this name.
const MAP: &str = "paceline.coverage";

/// Most bytes of a map's value, as in the kernel (`KMALLOC_MAX_SIZE`).
const MOST: usize = 4 << 20;

/// A program cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("program {program}")]
pub struct CoverageError {
    /// Name of the program.
    pub program: String,
    /// Cause.
    pub source: InstrumentError,
}

impl Object {
    /// The object with maps of counters ([`Collection::is_counters`]), in which engines count what programs run: [`Collection::coverage`] reads them. The
    /// programs, and what the verifier says of them, stay as they are. Programs that the object skips are not counted, and an object that has
    /// counters stays as it is.
    ///
    /// # Errors
    /// [`CoverageError`] names the first program that is malformed.
    pub fn with_coverage(mut self, counting: Counting) -> Result<Self, CoverageError> {
        if self.coverage.is_some() {
            return Ok(self);
        }
        let (mut plans, mut sizes) = (Vec::new(), Vec::new());
        for program in self.programs() {
            let plan = paceline_analysis::coverage::Plan::new(program)
                .map_err(|source| CoverageError { program: program.name.clone(), source })?;
            let bytes = plan.bytes();
            if sizes.last().is_none_or(|size| size + bytes > MOST) {
                sizes.push(0);
            }
            let map = sizes.len() - 1;
            plans.push((map, sizes[map], plan));
            sizes[map] += bytes;
        }
        let first = self.maps().len();
        for (program, (map, offset, plan)) in self.specs_mut().programs.iter_mut().zip(&plans) {
            *program = plan.counted(first + map, *offset, counting);
        }
        let mut maps = Vec::new();
        for size in sizes {
            let name = free_name(self.maps());
            let mut spec = MapSpec::new(&name, MapKind::Array, 4, size.max(8) as u32, 1);
            spec.contents = vec![(vec![0; 4], InitialValue::Bytes(Vec::new()))];
            self.specs_mut().maps.push(spec);
            maps.push(name);
        }
        self.coverage = Some(Arc::new(Plans { maps, plans }));
        Ok(self)
    }
}

impl Collection {
    /// The counts of all programs, none without
    /// [`Object::with_coverage`].
    #[must_use]
    pub fn coverage(&self) -> Vec<Counts> {
        let Some(Plans { maps, plans }) = self.object().coverage.as_deref() else { return Vec::new() };
        let value =
            |name: &String| self.map(name).and_then(|map| map.lookup(&[0; 4]).ok()).unwrap_or_default();
        let values: Vec<Vec<u8>> = maps.iter().map(value).collect();
        let of_program = |(map, offset, plan): &(usize, usize, paceline_analysis::coverage::Plan)| {
            let counters = values.get(*map).and_then(|value| value.get(*offset..*offset + plan.bytes()));
            plan.counts(counters.unwrap_or_default())
        };
        plans.iter().map(of_program).collect()
    }

    /// Whether a map holds the counters of coverage, and is none of the object's own.
    #[must_use]
    pub fn is_counters(&self, map: &str) -> bool {
        self.object().coverage.as_ref().is_some_and(|plans| plans.maps.iter().any(|name| name == map))
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
        let collection = object
            .with_coverage(Counting::Plain)
            .unwrap()
            .load(&crate::load::LoadOptions::default())
            .unwrap();
        let program = collection.program(None).unwrap();
        let mut burst = crate::Burst::default();
        burst.push(&[0; 60], crate::FrameMeta::default()).unwrap();
        program.run_burst(&mut burst, &mut crate::Host::default()).unwrap();
        assert_eq!(collection.coverage()[0].insns[0], 1);
        assert!(collection.is_counters("paceline.coverage.3") && !collection.is_counters(MAP));
    }
}
