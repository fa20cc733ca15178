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

/// The counters of an object's programs, each with the offset of its counters in the map's value.
#[derive(Clone, Debug)]
pub(crate) struct Plans(Vec<(usize, paceline_coverage::Plan)>);

impl Object {
    /// The object with a map of counters ([`MAP`]), and programs that count in it: [`Collection::coverage`] reads them. Programs that the
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
        let mut spec = MapSpec::new(MAP, MapKind::Array, 4, offset.max(8) as u32, 1);
        spec.contents = vec![(vec![0; 4], InitialValue::Bytes(Vec::new()))];
        self.specs_mut().maps.push(spec);
        self.coverage = Some(Arc::new(Plans(plans)));
        Ok(self)
    }
}

impl Collection {
    /// The counts of all programs, for their instructions as they were before they had counters; none without
    /// [`Object::with_coverage`].
    #[must_use]
    pub fn coverage(&self) -> Vec<Counts> {
        let value = self.map(MAP).and_then(|map| map.lookup(&[0; 4]).ok()).unwrap_or_default();
        let of_program = |(offset, plan): &(usize, paceline_coverage::Plan)| {
            plan.counts(value.get(*offset..*offset + plan.bytes()).unwrap_or_default())
        };
        self.object().coverage.iter().flat_map(|plans| &plans.0).map(of_program).collect()
    }
}
