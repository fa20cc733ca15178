//! What is taken for granted on the paths that were followed.

use paceline_spec::{InitialValue, ProgramKind};

use crate::symbolic::access::INGRESS;
use crate::symbolic::bounds::{Assumption, Bounds};
use crate::symbolic::explorer::Explorer;
use crate::symbolic::source::{RoutePart, Source};

impl Explorer<'_> {
    /// Notes that something is taken for granted.
    pub(crate) fn assume(&mut self, assumption: Assumption) {
        self.assumed.insert(assumption);
    }

    /// What holds for all paths that were followed.
    pub(crate) fn bounds(&self) -> Bounds {
        let mut assumptions = self.assumed.clone();
        let ingress = self.field_offset(INGRESS);
        assumptions.extend(self.sources.all().filter_map(|(source, _)| match source {
            Source::Present { .. } | Source::Value { .. } | Source::Fixed { .. } => {
                Some(Assumption::StillMaps)
            }
            Source::Route(RoutePart::Interface) => Some(Assumption::Interfaces),
            Source::Context(field) if field == ingress => Some(Assumption::Interfaces),
            Source::Address(_) => Some(Assumption::Addresses),
            _ => None,
        }));
        let program = self.verified.program();
        if !matches!(program.kind, ProgramKind::Xdp { frags: false, .. }) {
            assumptions.insert(Assumption::OneBuffer);
        }
        let is_called =
            |value: &InitialValue| matches!(value, InitialValue::Program(name) if *name == program.name);
        if self.maps.iter().flat_map(|map| &map.contents).any(|(_, value)| is_called(value)) {
            assumptions.insert(Assumption::First);
        }
        Bounds { length: self.options.length, assumptions }
    }
}
