//! Answers that are known: models and refutations of sets of conditions.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::solver::node::{Term, Var};

/// Most terms and variables in the answers of a kind: some dozens of megabytes. Then all of them are forgotten.
const MOST: usize = 4_000_000;

/// A model of a few variables.
pub(crate) type Part = Vec<(Var, u64)>;

/// Known answers, by sorted conditions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    models: HashMap<Box<[Term]>, Part, FixedState>,
    size_of_models: usize,
    /// Conditions that cannot hold together, by the newest of them.
    cores: HashMap<Term, Vec<Box<[Term]>>, FixedState>,
    size_of_cores: usize,
}

impl Cache {
    pub(crate) fn model(&self, conditions: &[Term]) -> Option<&Part> {
        self.models.get(conditions)
    }

    pub(crate) fn keep_model(&mut self, conditions: &[Term], part: Part) {
        self.size_of_models += conditions.len() + part.len();
        if self.size_of_models > MOST {
            self.models = HashMap::default();
            self.size_of_models = conditions.len() + part.len();
        }
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

    /// All sets that cannot hold together.
    pub(crate) fn cores(&self) -> impl Iterator<Item = &[Term]> {
        self.cores.values().flatten().map(|core| &**core)
    }

    pub(crate) fn keep_core(&mut self, mut core: Vec<Term>) {
        core.sort_unstable();
        let Some(&newest) = core.last() else { return };
        self.size_of_cores += core.len();
        if self.size_of_cores > MOST {
            self.cores = HashMap::default();
            self.size_of_cores = core.len();
        }
        self.cores.entry(newest).or_default().push(core.into());
    }
}
