//! Inputs at the boundaries of comparisons: what is off by one shows there.

use crate::solver::{Answer, Term};
use paceline_isa::{Condition, Operand, Reg, Width};

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::{Boundary, Edge, Goal, Goals, Side};
use crate::symbolic::plausible::Bytes;
use crate::symbolic::state::{Assignment, State};
use crate::symbolic::value::Value;

/// Edges, the most telling ones first.
const EDGES: [Edge; 4] = [Edge::Equal, Edge::Above, Edge::Below, Edge::Signs];

/// Paths on which an edge is looked for in vain.
const TRIALS: u32 = 3;

/// Paths that are followed from an edge, and inputs of them that are kept.
const STARTS: u32 = 3;
const INPUTS: usize = 4;

impl Explorer<'_> {
    /// Makes inputs at the boundaries of the jump at a state's slot that have none; where paths are looked for, notes what it compares.
    pub(crate) fn boundaries(
        &mut self,
        state: &mut State,
        width: Width,
        dst: Reg,
        src: Operand,
        condition: Condition,
    ) -> Result<(), GiveUp> {
        let of_paths = matches!(self.options.goals, Goals::Paths(_));
        let is_wanted = self.options.boundaries && (of_paths || self.options.goals == Goals::Sides);
        if !is_wanted || !of_paths && EDGES.iter().all(|edge| self.is_settled(state.slot, *edge)) {
            return Ok(());
        }
        let right = self.operand(state, src);
        let (left, right) = match (Self::register(state, dst), right) {
            (Value::Number(left), Value::Number(right)) => (left, right),
            (Value::Pointer(left), Value::Pointer(right)) if left.region == right.region => {
                (left.offset, right.offset)
            }
            _ => return Ok(()),
        };
        let bits = if width == Width::W32 { 32 } else { 64 };
        let (left, right) = (self.terms.extract(left, 0, bits), self.terms.extract(right, 0, bits));
        let holds = self.condition(state, width, condition, dst, src)?;
        if of_paths && state.at.is_none() && self.terms.value(holds).is_none() {
            for edge in EDGES {
                self.start_at(state, (left, right), edge);
            }
        } else if self.terms.value(holds).is_none() {
            for edge in EDGES {
                self.boundary(state, (left, right), edge, holds);
            }
        }
        Ok(())
    }

    fn is_settled(&self, slot: usize, edge: Edge) -> bool {
        self.boundaries.contains_key(&(slot, edge, 0))
            || self.vain.get(&(slot, edge)).is_some_and(|n| *n >= TRIALS)
    }

    /// Makes an input with two numbers at an edge, unless that is settled. `holds` is the condition of the jump.
    fn boundary(&mut self, state: &State, (left, right): (Term, Term), edge: Edge, holds: Term) {
        let slot = state.slot;
        if self.is_settled(slot, edge) {
            return;
        }
        let at_edge = self.at_edge(left, right, edge);
        *self.vain.entry((slot, edge)).or_default() += 1;
        let found = self.solver.extend(&mut self.terms, &state.path, &state.assignment.model, at_edge);
        let Answer::Sat(model) = found else { return };
        let mut other = state.clone();
        other.assignment = Assignment::new(model);
        let taken = other.assignment.value(&self.terms, holds) == 1;
        let side = if taken { holds } else { self.terms.not(holds) };
        other.path.extend([at_edge, side]);
        if let Ok((input, decided)) = self.decided_input(&other, Bytes::Zero) {
            let boundary = Boundary { side: Side { slot, taken }, edge, path: None, input, decided };
            self.boundaries.insert((slot, edge, 0), boundary);
        }
    }

    /// Keeps a path for later on which two numbers are at an edge: what comes of it may show on some of the ways from there alone.
    fn start_at(&mut self, state: &State, (left, right): (Term, Term), edge: Edge) {
        let slot = state.slot;
        let starts = self.vain.entry((slot, edge)).or_default();
        if *starts >= STARTS {
            return;
        }
        let at_edge = self.at_edge(left, right, edge);
        let found = self.solver.extend(&mut self.terms, &state.path, &state.assignment.model, at_edge);
        let Answer::Sat(model) = found else { return };
        *self.vain.entry((slot, edge)).or_default() += 1;
        let mut other = state.clone();
        other.assignment = Assignment::new(model);
        other.path.push(at_edge);
        other.at = Some((slot, edge));
        self.keep(other);
    }

    /// Makes an input of a path that has ended, if it is at the boundary of a comparison: a few for each edge, with different results.
    pub(crate) fn boundary_of_path(&mut self, state: &State, path: Goal) {
        let Some((slot, edge)) = state.at else { return };
        let number = (0..INPUTS).find(|number| !self.boundaries.contains_key(&(slot, edge, *number)));
        let result = match Self::register(state, Reg::R0) {
            Value::Number(number) => self.terms.value(number),
            _ => None,
        };
        let (Some(number), true) = (number, self.ends.insert((slot, edge, result))) else { return };
        let taken = state.sides().iter().find(|side| side.slot == slot).is_some_and(|side| side.taken);
        if let Ok((input, decided)) = self.decided_input(state, Bytes::Different) {
            let boundary = Boundary { side: Side { slot, taken }, edge, path: Some(path), input, decided };
            self.boundaries.insert((slot, edge, number), boundary);
        }
    }

    fn at_edge(&mut self, left: Term, right: Term, edge: Edge) -> Term {
        let one = self.terms.constant(self.terms.width(left), 1);
        match edge {
            Edge::Equal => self.terms.eq(left, right),
            Edge::Above => {
                let next = self.terms.add(right, one);
                self.terms.eq(left, next)
            }
            Edge::Below => {
                let next = self.terms.add(left, one);
                self.terms.eq(next, right)
            }
            Edge::Signs => {
                let (signed, unsigned) = (self.terms.slt(left, right), self.terms.ult(left, right));
                let same = self.terms.eq(signed, unsigned);
                self.terms.not(same)
            }
        }
    }
}
