//! Models that are small and plausible: wishes that are kept as far as conditions allow.

use crate::solver::check::{Solver, Unknown};
use crate::solver::eval::{Evaluator, Model};
use crate::solver::node::Term;
use crate::solver::sat::{Lit, Sat};
use crate::solver::terms::Terms;

/// A search for a better model.
struct Search<'w> {
    /// Literals of conditions, and of the wishes that are kept.
    assumed: Vec<Lit>,
    /// The same as terms.
    kept: Vec<Term>,
    /// Wishes that were not tried.
    rest: &'w [Term],
    best: Model,
}

impl<S: Sat> Solver<S> {
    /// A model of conditions that hold in `model`, in which wishes hold too, the first ones before the later ones: a wish that cannot hold
    /// with those before it is dropped. At a limit of the solver it is the best one that was found until then.
    pub fn prefer(
        &mut self,
        terms: &mut Terms,
        conditions: &[Term],
        model: &Model,
        wishes: &[Term],
    ) -> Model {
        let mut search = Search { assumed: Vec::new(), kept: Vec::new(), rest: wishes, best: model.clone() };
        // A limit leaves the best model so far.
        let _: Result<(), Unknown> = self.improve(terms, conditions, &mut search);
        search.best
    }

    fn improve(
        &mut self,
        terms: &mut Terms,
        conditions: &[Term],
        search: &mut Search<'_>,
    ) -> Result<(), Unknown> {
        let until = self.until();
        for &condition in conditions {
            search.assumed.push(self.literal(terms, condition, until)?);
            search.kept.push(condition);
        }
        let mut values = Evaluator::default();
        while let Some((&wish, rest)) = search.rest.split_first() {
            search.rest = rest;
            if terms.value(wish) == Some(0) {
                continue;
            }
            let until = self.until();
            search.assumed.push(self.literal(terms, wish, until)?);
            // A wish that holds anyway takes no search.
            if values.holds(terms, &search.best, wish) {
                search.kept.push(wish);
            } else if self.search(&search.assumed, until)? {
                search.kept.push(wish);
                for (var, value) in self.read(terms, &search.kept) {
                    search.best.set(var, value);
                }
                values = Evaluator::default();
            } else {
                search.assumed.pop();
            }
        }
        Ok(())
    }
}
