//! Questions about joint paths. What is hard to say of all of them at once is asked of each.

use crate::solver::{Answer, Model, Term, Unknown};

use crate::symbolic::explorer::Explorer;

/// Conflicts of a question about several paths, before it is asked of each.
const FEW: u64 = 1000;

/// Most questions for one about joint paths.
const MOST_QUESTIONS: u64 = 256;

impl Explorer<'_> {
    /// Whether a condition can hold together with those of a path, which hold in a model.
    pub(crate) fn ask(&mut self, path: &[Term], model: &Model, condition: Term) -> Answer {
        match self.ask_at_once(path, model, condition) {
            Answer::Unknown(Unknown::Conflicts) => match self.at_a_corner(path, model, condition) {
                Some(model) => Answer::Sat(model),
                None => Answer::Unknown(Unknown::Conflicts),
            },
            answer => answer,
        }
    }

    fn ask_at_once(&mut self, path: &[Term], model: &Model, condition: Term) -> Answer {
        if !path.iter().any(|term| self.joints.contains_key(term)) {
            return self.solver.extend(&mut self.terms, path, model, condition);
        }
        match self.try_to_ask(path, model, condition) {
            Answer::Unknown(Unknown::Conflicts) => {
                let mut left = MOST_QUESTIONS.saturating_mul(self.effort);
                self.ask_each(path.to_vec(), model, vec![condition], &mut left)
            }
            answer => answer,
        }
    }

    /// The same, with few conflicts.
    pub(crate) fn try_to_ask(&mut self, path: &[Term], model: &Model, condition: Term) -> Answer {
        self.solver.set_conflicts(Some(FEW.saturating_mul(self.effort).min(self.conflicts())));
        let answer = self.solver.extend(&mut self.terms, path, model, condition);
        self.solver.set_conflicts(Some(self.conflicts()));
        answer
    }

    /// Asks of both paths that were joined last, where it is not known of the joint one. `asked` are further conditions than those that hold
    /// in the model.
    fn ask_each(&mut self, mut path: Vec<Term>, model: &Model, asked: Vec<Term>, left: &mut u64) -> Answer {
        let is_joint = |term: &Term| self.joints.contains_key(term);
        let (mut asked, joint) = match asked.iter().rposition(is_joint) {
            Some(index) => {
                let mut rest = asked;
                let joint = rest.remove(index);
                (rest, Some(joint))
            }
            None => {
                let index = path.iter().rposition(is_joint);
                (asked, index.map(|index| path.remove(index)))
            }
        };
        let Some(parts) = joint.and_then(|joint| self.joints.get(&joint).cloned()) else {
            let condition = self.terms.all(asked);
            return self.solver.extend(&mut self.terms, &path, model, condition);
        };
        let own = asked.len();
        for part in parts {
            if *left == 0 || self.limit().is_some() {
                return Answer::Unknown(Unknown::Conflicts);
            }
            *left -= 1;
            asked.truncate(own);
            asked.extend(part);
            let condition = self.terms.all(asked.iter().copied());
            let answer = match self.try_to_ask(&path, model, condition) {
                Answer::Unknown(Unknown::Conflicts) => {
                    self.ask_each(path.clone(), model, asked.clone(), left)
                }
                answer => answer,
            };
            if answer != Answer::Unsat {
                return answer;
            }
        }
        Answer::Unsat
    }
}
