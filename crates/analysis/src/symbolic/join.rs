//! Paths that meet become one: where two states hold the same at one place, and differ in the conditions of their paths alone, what follows
//! is the same for both, and is followed once. Only where two programs are compared: of a joint path it is not told which way it came.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::solver::{Answer, Term};
use paceline_isa::Reg;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::memory::Memory;
use crate::symbolic::state::{ElementState, MapState, Object, Redirect, State};
use crate::symbolic::value::Value;

impl Explorer<'_> {
    /// Forgets registers and bytes of stacks that are not read any more, so that paths that differ in these alone meet.
    pub(crate) fn forget_dead(&self, state: &mut State) {
        let Some(order) = self.order_of(state) else { return };
        let is_dead = |slot, number| Reg::new(number).is_some_and(|reg| !order.is_live(slot, reg));
        for number in 0..10 {
            if is_dead(state.slot, number) && !state.has_ended {
                state.registers[usize::from(number)] = Value::Unset;
            }
        }
        for frame in state.frames.iter_mut().skip(1) {
            for (number, saved) in (6..).zip(&mut frame.saved) {
                if is_dead(frame.return_to, number) {
                    *saved = Value::Unset;
                }
            }
        }
        // A call reads of the caller's stack what the called function reads.
        let callers = state.frames.iter().skip(1).map(|frame| frame.return_to.saturating_sub(1));
        let slots: Vec<usize> = callers.chain([state.slot]).collect();
        for (frame, slot) in state.frames.iter_mut().zip(slots) {
            let Some(live) = order.live_stack(slot) else { continue };
            if frame.stack.offsets().any(|offset| !live.contains(offset)) {
                Rc::make_mut(&mut frame.stack).retain(|offset| live.contains(offset));
            }
        }
    }

    /// Makes a path one of both, if they meet.
    pub(crate) fn join(&mut self, a: &mut State, b: &State) -> bool {
        if !meet(a, b) {
            return false;
        }
        let parts = parts(a, b);
        let split = self.split(&parts);
        self.set_either(a, parts, split);
        self.join_rest(a, b);
        true
    }

    /// Joins the parts of states that do not influence what follows.
    pub(crate) fn join_rest(&self, a: &mut State, b: &State) {
        for (map, other) in a.maps.iter_mut().zip(&b.maps) {
            if !Rc::ptr_eq(map, other) {
                let map = Rc::make_mut(map);
                map.retired = map.retired.max(other.retired);
            }
        }
        a.is_elsewhere |= b.is_elsewhere;
        a.guess = a.guess.take().or_else(|| b.guess.clone());
        let rounds = Rc::make_mut(&mut a.rounds);
        for (side, count) in b.rounds.iter() {
            let known = rounds.entry(*side).or_default();
            *known = (*known).max(*count);
        }
        a.instructions = a.instructions.max(b.instructions);
        a.cost = a.cost.min(b.cost);
    }

    /// Makes the conditions of a path those of either of two, and gives that which says that it is the second one; none, and nothing changes, if it may
    /// be both.
    pub(crate) fn join_conditions(&mut self, a: &mut State, b: &State) -> Option<Term> {
        let parts = parts(a, b);
        let split = self.split(&parts);
        let is_second = match split {
            Some(split) => self.terms.not(split),
            None => {
                let [one, other] = parts.own.clone().map(|own| self.terms.all(own));
                let both = self.terms.and(one, other);
                if self.try_to_ask(&parts.common, &a.assignment.model, both) != Answer::Unsat {
                    return None;
                }
                other
            }
        };
        self.set_either(a, parts, split);
        Some(is_second)
    }

    /// A condition of the first path whose opposite is one of the second.
    fn split(&mut self, Parts { own: [first, second], .. }: &Parts) -> Option<Term> {
        first.iter().copied().find(|condition| {
            let not = self.terms.not(*condition);
            second.contains(&not)
        })
    }

    /// Makes the conditions of a path those of either of two. Its model stays one.
    fn set_either(&mut self, a: &mut State, Parts { common, own }: Parts, split: Option<Term>) {
        a.path = common;
        let [first, second] = own.clone();
        let either = match split {
            // Where a condition tells the paths apart, the others are those of one of them.
            Some(split) => {
                let not = self.terms.not(split);
                let first = self.terms.all(first.into_iter().filter(|condition| *condition != split));
                let second = self.terms.all(second.into_iter().filter(|condition| *condition != not));
                self.terms.ite(split, first, second)
            }
            None => {
                let (first, second) = (self.terms.all(first), self.terms.all(second));
                self.terms.or(first, second)
            }
        };
        match self.terms.value(either) {
            Some(1) => {}
            Some(_) => a.path.push(either),
            None => {
                self.joints.entry(either).or_insert(own);
                a.path.push(either);
            }
        }
    }
}

/// The conditions of two paths.
struct Parts {
    /// Those of both.
    common: Vec<Term>,
    /// Those of each alone.
    own: [Vec<Term>; 2],
}

/// Tells the conditions that two paths have in common from the others of each.
fn parts(a: &State, b: &State) -> Parts {
    let of_a: BTreeSet<Term> = a.path.iter().copied().collect();
    let of_b: BTreeSet<Term> = b.path.iter().copied().collect();
    let (common, first) = a.path.iter().copied().partition(|condition| of_b.contains(condition));
    let second = b.path.iter().copied().filter(|condition| !of_a.contains(condition)).collect();
    Parts { common, own: [first, second] }
}

/// Whether all that follows is the same for two states.
fn meet(a: &State, b: &State) -> bool {
    a.registers == b.registers && frames_are_equal(a, b) && meet_in_all_but_numbers(a, b)
}

/// Whether two states are the same but for registers, those of callers too, and stacks.
pub(crate) fn meet_in_all_but_numbers(a: &State, b: &State) -> bool {
    let is_same_run = match (&a.first, &b.first) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    };
    let target = |target: Option<Redirect>| target.map(|target| (target.map, target.number, target.flags));
    is_same_run
        && (a.slot == b.slot || a.has_ended)
        && a.has_ended == b.has_ended
        && calls_are_equal(a, b)
        && (a.packet.start, a.packet.meta) == (b.packet.start, b.packet.meta)
        && (a.packet.end, a.packet.floor) == (b.packet.end, b.packet.floor)
        && memories_are_equal(&a.packet.written, &b.packet.written)
        && a.context == b.context
        && a.drawn == b.drawn
        && (Rc::ptr_eq(&a.sent, &b.sent) || a.sent == b.sent)
        && target(a.redirect) == target(b.redirect)
        && target(a.tail) == target(b.tail)
        && a.objects.len() == b.objects.len()
        && a.objects.iter().zip(&b.objects).all(|(a, b)| objects_are_equal(a, b))
        && a.maps.iter().zip(&b.maps).all(|(a, b)| maps_are_equal(a, b))
}

fn frames_are_equal(a: &State, b: &State) -> bool {
    a.frames.len() == b.frames.len()
        && a.frames
            .iter()
            .zip(&b.frames)
            .all(|(a, b)| a.saved == b.saved && memories_are_equal(&a.stack, &b.stack))
}

fn calls_are_equal(a: &State, b: &State) -> bool {
    a.frames.len() == b.frames.len()
        && a.frames.iter().zip(&b.frames).all(|(a, b)| (a.return_to, a.callback) == (b.return_to, b.callback))
}

fn memories_are_equal(a: &Rc<Memory>, b: &Rc<Memory>) -> bool {
    Rc::ptr_eq(a, b) || a == b
}

fn objects_are_equal(a: &Rc<Object>, b: &Rc<Object>) -> bool {
    Rc::ptr_eq(a, b) || a.initial == b.initial && a.written == b.written
}

fn maps_are_equal(a: &Rc<MapState>, b: &Rc<MapState>) -> bool {
    let is_same = |(a, b): (&ElementState, &ElementState)| {
        (a.now, a.was_there, a.may_be_gone) == (b.now, b.was_there, b.may_be_gone) && a.key == b.key
    };
    Rc::ptr_eq(a, b)
        || a.room == b.room
            && a.elements.len() == b.elements.len()
            && a.elements.iter().zip(&b.elements).all(is_same)
}
