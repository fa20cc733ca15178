//! The control flow of each program that was seen.

use std::collections::HashMap;
use std::sync::Arc;

use paceline_engine::Observed;
use paceline_isa::decode;

use crate::explain::flow::Flow;

/// Control flow by program.
#[derive(Default)]
pub(crate) struct Flows {
    known: HashMap<u32, Arc<Flow>>,
}

impl Flows {
    /// The control flow of the program that runs.
    pub(crate) fn of(&mut self, observed: &Observed<'_>) -> Arc<Flow> {
        let new = || {
            let code = decode(&observed.program().insns).expect("a program that runs was decoded");
            Arc::new(Flow::of(code))
        };
        Arc::clone(self.known.entry(observed.program_id()).or_insert_with(new))
    }
}
