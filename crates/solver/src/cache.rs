//! Answers that are known: models and refutations of sets of conditions.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::node::{Term, Var};

/// A model of a few variables.
pub(crate) type Part = Vec<(Var, u64)>;

/// Known answers, by sorted conditions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    models: HashMap<Box<[Term]>, Part, FixedState>,
    /// Conditions that cannot hold together, by the newest of them.
    cores: HashMap<Term, Vec<Box<[Term]>>, FixedState>,
}

impl Cache {
    pub(crate) fn model(&self, conditions: &[Term]) -> Option<&Part> {
        self.models.get(conditions)
    }

    pub(crate) fn keep_model(&mut self, conditions: &[Term], part: Part) {
        self.models.insert(conditions.into(), part);
    }

    /// Whether conditions, sorted, contain some that cannot hold together.
    pub(crate) fn is_refuted(&self, conditions: &[Term]) -> bool {
        conditions.iter().any(|newest| {
            self.cores.get(newest).is_some_and(|cores| {
                cores.iter().any(|core| core.iter().all(|term| conditions.binary_search(term).is_ok()))
            })
        })
    }

    pub(crate) fn keep_core(&mut self, mut core: Vec<Term>) {
        core.sort_unstable();
        if let Some(&newest) = core.last() {
            self.cores.entry(newest).or_default().push(core.into());
        }
    }
}
