//! Coverage: how often each line, function and branch of programs ran.
//!
//! ```
//! use paceline::coverage::{Counting, Report};
//! use paceline::{Burst, FrameMeta, Host, LoadOptions, Object};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
//! let (object, coverage) = Object::open(path)?.with_coverage(Counting::Plain)?;
//! let collection = object.load(&LoadOptions::default())?;
//! let program = collection.program(None)?;
//! let mut burst = Burst::default();
//! burst.push(&[0; 60], FrameMeta::default())?;
//! program.run_burst(&mut burst, &mut Host::default())?;
//!
//! let counts = coverage.counts(&collection);
//! assert_eq!(counts[0].insns[0], 1);
//! assert!(Report::new(&counts).totals().lines.0 > 10);
//! # Ok(())
//! # }
//! ```

use paceline_spec::{InitialValue, MapKind, MapSpec};

pub use paceline_coverage::{
    BranchCount, BranchLine, Counting, Counts, FileReport, FunctionReport, InstrumentError, LineReport,
    Report, Totals,
};

use crate::{Collection, Object};

/// Name of the map that holds the counters.
pub const MAP: &str = "paceline.coverage";

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
pub struct Coverage {
    /// With the offset of each program's counters in the map's value.
    plans: Vec<(usize, paceline_coverage::Plan)>,
}

impl Object {
    /// The object with a map of counters, and programs that count in it. Programs that the object skips stay without.
    ///
    /// # Errors
    /// [`CoverageError`] names the first program that cannot have counters.
    pub fn with_coverage(&self, counting: Counting) -> Result<(Self, Coverage), CoverageError> {
        let mut object = self.clone();
        let map = self.maps().len();
        let (mut plans, mut offset) = (Vec::new(), 0);
        for program in &mut object.specs_mut().programs {
            let instrumented = paceline_coverage::instrument(program, map, offset, counting);
            let (with_counters, plan) =
                instrumented.map_err(|source| CoverageError { program: program.name.clone(), source })?;
            *program = with_counters;
            let start = offset;
            offset += plan.bytes();
            plans.push((start, plan));
        }
        let mut spec = MapSpec::new(MAP, MapKind::Array, 4, offset.max(8) as u32, 1);
        spec.contents = vec![(vec![0; 4], InitialValue::Bytes(Vec::new()))];
        object.specs_mut().maps.push(spec);
        Ok((object, Coverage { plans }))
    }
}

impl Coverage {
    /// The counts of all programs, in the order of the object, for the instructions as they were before they had counters.
    #[must_use]
    pub fn counts(&self, collection: &Collection) -> Vec<Counts> {
        let value = collection.map(MAP).and_then(|map| map.lookup(&[0; 4]).ok()).unwrap_or_default();
        let of_program = |(offset, plan): &(usize, paceline_coverage::Plan)| {
            plan.counts(value.get(*offset..*offset + plan.bytes()).unwrap_or_default())
        };
        self.plans.iter().map(of_program).collect()
    }
}
