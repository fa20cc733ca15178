//! Whether conditions can hold together.

use std::time::{Duration, Instant};

use crate::solver::blast::Blaster;
use crate::solver::cache::{Cache, Part};
use crate::solver::eval::{Evaluator, Model};
use crate::solver::node::{Term, Var};
use crate::solver::sat::{Lit, Outcome, Sat};
use crate::solver::terms::Terms;

/// The SAT solver begins anew when it has so many variables, since it decides all of them in each search.
const MOST_VARIABLES: usize = 400_000;

/// The reason why it is not known whether conditions can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// The search met as many conflicts as it may.
    Conflicts,
    /// The time was over.
    Time,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Conflicts => "the solver reached its limit of conflicts",
            Self::Time => "the solver's time was over",
        })
    }
}

/// The answer to a question about conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All of them hold in this model.
    Sat(Model),
    /// They cannot hold together.
    Unsat,
    /// It is not known.
    Unknown(Unknown),
}

/// Answers questions about conditions over the terms of one pool.
#[derive(Debug, Default)]
pub struct Solver<S: Sat> {
    pub(crate) blaster: Blaster<S>,
    pub(crate) cache: Cache,
    conflicts: Option<u64>,
    time: Option<Duration>,
    deadline: Option<Instant>,
    questions: u64,
    searches: u64,
}

impl<S: Sat> Solver<S> {
    /// A solver whose searches end after so many conflicts, or after some time.
    #[must_use]
    pub fn new(conflicts: Option<u64>, time: Option<Duration>) -> Self {
        Self {
            blaster: Blaster::default(),
            cache: Cache::default(),
            conflicts,
            time,
            deadline: None,
            questions: 0,
            searches: 0,
        }
    }

    /// All questions end at this time, whatever each of them may take.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Searches end after so many conflicts from now on.
    pub fn set_conflicts(&mut self, conflicts: Option<u64>) {
        self.conflicts = conflicts;
    }

    /// Searches end after so many conflicts, or after some time, from now on.
    pub fn set_limits(&mut self, conflicts: Option<u64>, time: Option<Duration>) {
        (self.conflicts, self.time) = (conflicts, time);
    }

    /// Questions so far, and how many of them took a search.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.questions, self.searches)
    }

    /// Whether a new condition can hold together with others that hold in `model`. Others without a variable in common with it,
    /// directly or through further ones, keep their numbers.
    pub fn extend(&mut self, terms: &mut Terms, others: &[Term], model: &Model, condition: Term) -> Answer {
        self.questions += 1;
        match terms.value(condition) {
            Some(1) => return Answer::Sat(model.clone()),
            Some(_) => return Answer::Unsat,
            None => {}
        }
        if Evaluator::default().holds(terms, model, condition) {
            return Answer::Sat(model.clone());
        }
        let asked = connected(terms, others, condition);
        match self.part(terms, &asked) {
            Ok(Some(part)) => {
                let mut model = model.clone();
                part.into_iter().for_each(|(var, value)| model.set(var, value));
                Answer::Sat(model)
            }
            Ok(None) => Answer::Unsat,
            Err(unknown) => Answer::Unknown(unknown),
        }
    }

    /// Conditions that were found not to hold together, as far as they are kept, in no order.
    pub fn refuted(&self) -> impl Iterator<Item = &[Term]> {
        self.cache.cores()
    }

    /// Whether conditions can hold together.
    pub fn check(&mut self, terms: &mut Terms, conditions: &[Term]) -> Answer {
        let (mut model, mut before) = (Model::default(), Vec::new());
        let mut conditions = conditions.to_vec();
        conditions.sort_unstable();
        conditions.dedup();
        for &condition in &conditions {
            match self.extend(terms, &before, &model, condition) {
                Answer::Sat(next) => model = next,
                other => return other,
            }
            before.push(condition);
        }
        Answer::Sat(model)
    }

    /// Numbers of the variables of conditions, which are sorted; `None` if they cannot hold together.
    fn part(&mut self, terms: &mut Terms, conditions: &[Term]) -> Result<Option<Part>, Unknown> {
        if let Some(part) = self.cache.model(conditions) {
            return Ok(Some(part.clone()));
        }
        if self.cache.is_refuted(conditions) {
            return Ok(None);
        }
        let until = self.until();
        let literals = conditions.iter().map(|condition| self.literal(terms, *condition, until));
        let literals = literals.collect::<Result<Vec<_>, _>>()?;
        match self.search(&literals, until)? {
            true => {
                let part = self.read(terms, conditions);
                self.cache.keep_model(conditions, part.clone());
                Ok(Some(part))
            }
            false => {
                let core = self.blaster.sat.core();
                let in_core = conditions.iter().zip(&literals).filter(|(_, literal)| core.contains(literal));
                let core: Vec<_> = in_core.map(|(condition, _)| *condition).collect();
                self.cache.keep_core(core);
                Ok(None)
            }
        }
    }

    /// The end of a question that is asked now.
    pub(crate) fn until(&self) -> Option<Instant> {
        let own = self.time.and_then(|time| Instant::now().checked_add(time));
        [own, self.deadline].into_iter().flatten().min()
    }

    pub(crate) fn literal(
        &mut self,
        terms: &Terms,
        condition: Term,
        until: Option<Instant>,
    ) -> Result<Lit, Unknown> {
        self.blaster.literal(terms, condition, until).ok_or(Unknown::Time)
    }

    /// Whether literals can hold together; the blaster has the model then.
    pub(crate) fn search(&mut self, literals: &[Lit], until: Option<Instant>) -> Result<bool, Unknown> {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(Unknown::Time);
        }
        self.searches += 1;
        match self.blaster.sat.solve(literals, self.conflicts.unwrap_or(u64::MAX), until) {
            Outcome::Sat => Ok(true),
            Outcome::Unsat => Ok(false),
            Outcome::Stopped if until.is_some_and(|until| Instant::now() >= until) => Err(Unknown::Time),
            Outcome::Stopped => Err(Unknown::Conflicts),
        }
    }

    /// The variables of conditions in the last model.
    pub(crate) fn read(&self, terms: &mut Terms, conditions: &[Term]) -> Part {
        let mut vars: Vec<Var> =
            conditions.iter().flat_map(|condition| terms.support(*condition).to_vec()).collect();
        vars.sort_unstable();
        vars.dedup();
        vars.into_iter().filter_map(|var| Some((var, self.blaster.value(var)?))).collect()
    }

    /// Begins with a fresh SAT solver if this one has grown too large. Answers are kept.
    pub fn tidy(&mut self) {
        if self.blaster.variables() > MOST_VARIABLES {
            self.blaster = Blaster::default();
        }
    }
}

/// A condition and those that have variables in common with it, directly or through each other; sorted.
pub(crate) fn connected(terms: &mut Terms, others: &[Term], condition: Term) -> Vec<Term> {
    let mut reached: Vec<Var> = terms.support(condition).to_vec();
    let mut rest: Vec<Term> = others.to_vec();
    let mut connected = vec![condition];
    loop {
        let before = rest.len();
        rest.retain(|other| {
            let support = terms.support(*other);
            let shares = support.iter().any(|var| reached.binary_search(var).is_ok());
            if shares {
                connected.push(*other);
                reached.extend(support.iter());
                reached.sort_unstable();
                reached.dedup();
            }
            !shares
        });
        if rest.len() == before {
            break;
        }
    }
    connected.sort_unstable();
    connected.dedup();
    connected
}
