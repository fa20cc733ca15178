//! Cases on the verifier, and what it accepts on the plain interpreter.

use paceline_verifier::{Options, verify};

use super::{Engine, PlainEngine, Unsupported};
use crate::case::{Case, CaseKind};
use crate::outcome::{Outcome, Ran, Refusal};

/// The verifier; the plain interpreter runs what it accepts.
#[derive(Clone, Copy, Debug)]
pub struct VerifierEngine;

impl Engine for VerifierEngine {
    fn name(&self) -> &'static str {
        "paceline"
    }

    fn verifies(&self) -> bool {
        true
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        if case.kind == CaseKind::Raw {
            return Err(Unsupported::RawMemory);
        }
        for (program, spec) in case.programs.iter().enumerate() {
            if let Err(refusal) = verify(spec, &case.maps, Some(&case.btf), &Options::default()) {
                let place = Some((program, refusal.slot));
                return Ok(Outcome::Refused(Refusal {
                    reason: refusal.to_string(),
                    place,
                    in_our_words: true,
                }));
            }
        }
        if case.runs.is_empty() {
            // Only the verdict is asked for; the interpreter may not have all that the verifier knows.
            return Ok(Outcome::Ran(Ran { runs: Vec::new(), maps: Vec::new() }));
        }
        PlainEngine.run(case)
    }
}
