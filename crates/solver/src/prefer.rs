//! Models that are small and plausible: wishes that are kept as far as conditions allow.

use crate::check::{Solver, Unknown};
use crate::eval::{Evaluator, Model};
use crate::node::Term;
use crate::sat::Sat;
use crate::terms::Terms;

impl<S: Sat> Solver<S> {
    /// A model of conditions that hold in `model`, in which wishes hold too, the first ones before the later ones: a wish that cannot hold
    /// with those before it is dropped.
    ///
    /// # Errors
    /// A limit of the solver was reached before any better model was found.
    pub fn prefer(
        &mut self,
        terms: &mut Terms,
        conditions: &[Term],
        model: &Model,
        wishes: &[Term],
    ) -> Result<Model, Unknown> {
        let mut assumed: Vec<_> =
            conditions.iter().map(|condition| self.literal(terms, *condition)).collect();
        let mut kept: Vec<_> = conditions.to_vec();
        let mut best = model.clone();
        let mut values = Evaluator::default();
        let mut rest = wishes.iter().copied().peekable();
        while rest.peek().is_some() {
            // Wishes that hold anyway are kept; the next one that does not is tried with all others that are left, then alone.
            while let Some(&wish) = rest.peek() {
                if !values.holds(terms, &best, wish) {
                    break;
                }
                assumed.push(self.literal(terms, wish));
                kept.push(wish);
                rest.next();
            }
            let Some(wish) = rest.next() else { break };
            if terms.value(wish) == Some(0) {
                continue;
            }
            let literal = self.literal(terms, wish);
            assumed.push(literal);
            if self.search(&assumed)? {
                kept.push(wish);
                for (var, value) in self.read(terms, &kept) {
                    best.set(var, value);
                }
                values = Evaluator::default();
            } else {
                assumed.pop();
            }
        }
        Ok(best)
    }
}
