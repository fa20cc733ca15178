//! Paths that come together and differ in numbers alone become one, in which each of these numbers is chosen by the way that was taken. Only where two
//! programs are compared, and where there would be many paths otherwise: in loops of the running function, where each round would double them, and right
//! behind them. What the second program chooses is often what the first one chose, by conditions of another form: then it becomes the same term, and what
//! is computed from it is the same without a question.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use crate::solver::{Answer, Term};

use crate::symbolic::alu;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::join::meet_in_all_but_numbers;
use crate::symbolic::memory::{Byte, Memory};
use crate::symbolic::state::{Assignment, State};
use crate::symbolic::value::Value;

/// Bytes of memory that are chosen together.
const WORD: i64 = 4;

/// Numbers that the first program chose and that are tried for one of the second, and those that the solver is asked about.
const MOST_TRIED: usize = 1000;
const MOST_COMPARED: usize = 8;

/// Where a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(usize),
    /// A register of a caller: number of the frame, and of the register from `r6` on.
    Saved(usize, usize),
    /// A word of a frame's stack.
    Stack(usize, i64),
}

impl Explorer<'_> {
    /// Joins paths at one place whose states differ in numbers alone.
    pub(crate) fn choose(&mut self, states: Vec<State>) -> Vec<State> {
        let order = states.first().and_then(|state| Some((self.order_of(state)?, state)));
        if !order.is_some_and(|(order, state)| !state.has_ended && order.is_of_loop(state.slot)) {
            return states;
        }
        let mut groups: Vec<Vec<State>> = Vec::new();
        for state in states {
            match groups.iter_mut().find(|group| is_alike(&group[0], &state)) {
                Some(group) => group.push(state),
                None => groups.push(vec![state]),
            }
        }
        groups.into_iter().flat_map(|group| self.chosen(group)).collect()
    }

    fn chosen(&mut self, group: Vec<State>) -> Vec<State> {
        if group.len() == 1 {
            return group;
        }
        let mut models: Vec<Assignment> = group.iter().map(|state| state.assignment.clone()).collect();
        let common = common_conditions(&group);
        let mut group = group.into_iter();
        let Some(mut joint) = group.next() else { return Vec::new() };
        let mut rest = Vec::new();
        let mut changed = BTreeSet::new();
        for other in group {
            let Some(is_other) = self.join_conditions(&mut joint, &other) else {
                rest.push(other);
                continue;
            };
            for place in places(&joint, &other) {
                let (here, there) = (self.at(&joint, place), self.at(&other, place));
                let number = self.choice(is_other, there, here);
                self.set_at(&mut joint, place, number);
                changed.insert(place);
            }
            self.join_rest(&mut joint, &other);
        }
        self.drop_conditions(&mut joint, &common);
        for place in changed {
            let number = self.at(&joint, place);
            let number = self.known_choice(&joint, &mut models, number);
            self.set_at(&mut joint, place, number);
        }
        rest.push(joint);
        rest
    }

    /// One of two numbers, of as few bits as a word has if they fit.
    fn choice(&mut self, condition: Term, then: Term, otherwise: Term) -> Term {
        let width = self.terms.width(then);
        let bits = self.bits_of(then).max(self.bits_of(otherwise));
        let (then, otherwise) = (self.terms.extract(then, 0, bits), self.terms.extract(otherwise, 0, bits));
        let chosen = self.terms.ite(condition, then, otherwise);
        self.terms.resize(chosen, width)
    }

    /// Width of the number's low part that is enough for it: 32 bits if it fits, else all.
    fn bits_of(&self, number: Term) -> u32 {
        let width = self.terms.width(number);
        if self.terms.range(number).1 <= u64::from(u32::MAX) { width.min(32) } else { width }
    }

    fn at(&mut self, state: &State, place: Place) -> Term {
        let zero = self.terms.constant(64, 0);
        let number = |value: Value| match value {
            Value::Number(number) => number,
            _ => zero,
        };
        match place {
            Place::Register(register) => number(state.registers[register]),
            Place::Saved(frame, register) => number(state.frames[frame].saved[register]),
            Place::Stack(frame, start) => {
                let zero = self.terms.constant(8, 0);
                let stack = &state.frames[frame].stack;
                let bytes: Vec<Term> = (start..start + WORD)
                    .map(|offset| match stack.get(offset) {
                        Some(Byte::Number(byte)) => byte,
                        _ => zero,
                    })
                    .collect();
                alu::word(&mut self.terms, &bytes)
            }
        }
    }

    fn set_at(&mut self, state: &mut State, place: Place, number: Term) {
        match place {
            Place::Register(register) => state.registers[register] = Value::Number(number),
            Place::Saved(frame, register) => state.frames[frame].saved[register] = Value::Number(number),
            Place::Stack(frame, start) => {
                let bytes = alu::bytes(&mut self.terms, number, WORD as usize);
                let stack = Rc::make_mut(&mut state.frames[frame].stack);
                (start..).zip(bytes).for_each(|(offset, byte)| stack.set(offset, Byte::Number(byte)));
            }
        }
    }

    /// Keeps only the conditions that all joined paths have in common, if the solver proves that they imply the joint condition.
    fn drop_conditions(&mut self, joint: &mut State, common: &BTreeSet<Term>) {
        let (kept, others): (Vec<Term>, Vec<Term>) =
            joint.path.iter().copied().partition(|condition| common.contains(condition));
        let all = self.terms.all(others);
        let none = self.terms.not(all);
        if self.try_to_ask(&kept, &joint.assignment.model, none) == Answer::Unsat {
            joint.path = kept;
        }
    }

    /// The number that the first program chose, if it is the same on a path of the second one. `models` are those of the paths that were joined.
    fn known_choice(&mut self, state: &State, models: &mut Vec<Assignment>, number: Term) -> Term {
        let width = self.terms.width(number);
        let bits = self.bits_of(number);
        let part = self.terms.extract(number, 0, bits);
        if self.terms.value(part).is_some() || self.choices.contains(&part) {
            return number;
        }
        if state.first.is_none() {
            self.choices.push(part);
            return number;
        }
        let all: Vec<Term> = self.choices.iter().rev().take(MOST_TRIED).copied().collect();
        // A number of variables that this path does not have may not stand in its state.
        let known: HashSet<_> =
            state.path.iter().chain([&part]).flat_map(|term| self.terms.support(*term).to_vec()).collect();
        // Equal numbers mostly have the same variables.
        let support = self.terms.support(part);
        let (mut candidates, mut others) = (Vec::new(), Vec::new());
        for other in all {
            let made_of = self.terms.support(other);
            if self.terms.width(other) == bits && made_of.iter().all(|var| known.contains(var)) {
                if made_of == support { &mut candidates } else { &mut others }.push(other);
            }
        }
        candidates.extend(others);
        let mut asked = 0;
        for other in candidates {
            let terms = &self.terms;
            let is_near = models.iter().all(|model| model.value(terms, other) == model.value(terms, part));
            if !is_near {
                continue;
            }
            let differs = self.unequal(part, other);
            let answer = self.try_to_ask(&state.path, &state.assignment.model, differs);
            match answer {
                Answer::Unsat => return self.terms.resize(other, width),
                // A model that tells one candidate apart often tells others apart too.
                Answer::Sat(model) => models.push(Assignment::new(model)),
                Answer::Unknown(_) => {}
            }
            asked += 1;
            if asked == MOST_COMPARED {
                break;
            }
        }
        number
    }
}

/// Conditions that hold on all of some paths.
fn common_conditions(group: &[State]) -> BTreeSet<Term> {
    let mut all = group.iter().map(|state| state.path.iter().copied().collect::<BTreeSet<Term>>());
    let first = all.next().unwrap_or_default();
    all.fold(first, |common, path| common.intersection(&path).copied().collect())
}

/// Whether two states differ in numbers alone, of which registers and stacks have others.
fn is_alike(a: &State, b: &State) -> bool {
    let values = |a: &[Value], b: &[Value]| {
        a.iter().zip(b).all(|(a, b)| a == b || matches!((a, b), (Value::Number(_), Value::Number(_))))
    };
    meet_in_all_but_numbers(a, b)
        && values(&a.registers, &b.registers)
        && a.frames.iter().zip(&b.frames).all(|(a, b)| {
            values(&a.saved, &b.saved)
                && (Rc::ptr_eq(&a.stack, &b.stack)
                    || words(&a.stack, &b.stack).into_iter().all(|(_, fits)| fits))
        })
}

/// The words in which two stacks differ, and whether all bytes of each are numbers.
fn words(a: &Memory, b: &Memory) -> Vec<(i64, bool)> {
    let differing = a.offsets().chain(b.offsets()).filter(|offset| a.get(*offset) != b.get(*offset));
    let starts: BTreeSet<i64> = differing.map(|offset| offset.div_euclid(WORD) * WORD).collect();
    let is_number = |byte: Option<Byte>| !matches!(byte, Some(Byte::Part(..)));
    let fits =
        |start: i64| (start..start + WORD).all(|offset| is_number(a.get(offset)) && is_number(b.get(offset)));
    starts.into_iter().map(|start| (start, fits(start))).collect()
}

/// The places at which two states that are alike have other numbers.
fn places(a: &State, b: &State) -> Vec<Place> {
    let mut places: Vec<Place> = (0..a.registers.len())
        .filter(|register| a.registers[*register] != b.registers[*register])
        .map(Place::Register)
        .collect();
    for (frame, (a, b)) in a.frames.iter().zip(&b.frames).enumerate() {
        let saved = (0..a.saved.len()).filter(|register| a.saved[*register] != b.saved[*register]);
        places.extend(saved.map(|register| Place::Saved(frame, register)));
        if !Rc::ptr_eq(&a.stack, &b.stack) {
            places.extend(words(&a.stack, &b.stack).into_iter().map(|(start, _)| Place::Stack(frame, start)));
        }
    }
    places
}
