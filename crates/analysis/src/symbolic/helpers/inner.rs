//! Maps in maps.

use crate::solver::Term;
use paceline_spec::{InitialValue, MapKind};

use crate::symbolic::bounds::Assumption;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::Meets;
use crate::symbolic::state::State;
use crate::symbolic::value::Value;

/// Most maps that a map of maps is followed with.
const MOST: usize = 64;

impl Explorer<'_> {
    /// A look-up in a map of maps: a map that the object puts there, or none. A map that user space puts at another key is given up.
    pub(super) fn inner_map(&mut self, state: &mut State, map: usize, key: &[Term]) -> Result<Value, GiveUp> {
        let spec = self.spec(map)?;
        let (kind, entries) = (spec.kind, u64::from(spec.max_entries));
        if self.twin.is_some() || spec.contents.len() > MOST {
            return Err(GiveUp::Map(kind, "bpf_map_lookup_elem"));
        }
        let inner: Vec<_> = spec
            .contents
            .iter()
            .filter_map(|(key, value)| match value {
                InitialValue::Map(inner) => Some((key.clone(), *inner)),
                _ => None,
            })
            .collect();
        for (known, inner) in inner {
            let known: Vec<_> = known.iter().map(|byte| self.terms.constant(8, u64::from(*byte))).collect();
            let same = self.same_key(&known, key);
            if self.decide(state, same, 0) {
                self.assume(Assumption::InnerMaps);
                self.met(state, Meets::Found);
                return Ok(Value::Map(inner));
            }
        }
        let mut may_be_there = true;
        if kind == MapKind::ArrayOfMaps {
            let index = crate::symbolic::alu::word(&mut self.terms, key);
            let entries = self.terms.constant(32, entries);
            let is_within = self.terms.ult(index, entries);
            may_be_there = self.decide(state, is_within, 0);
        }
        if may_be_there {
            self.leave(state, GiveUp::Map(kind, "a map that user space puts there"));
        }
        self.met(state, Meets::NotFound);
        Ok(self.returned(0))
    }
}
