//! Two programs over the same unknown inputs: the second one runs after the first on each of its paths, from the same start, and the solver
//! says whether they leave something else.
//!
//! The condition that both left the same is one term, events and traces included. Addresses, but for those of the packet, and results of the machine
//! are given up, as the programs have others. A run notes what it leaves at its first tail call as well, so that a difference there
//! is confirmed also if the runs end alike.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::{MapSpec, Meaning};
use paceline_verifier::Verified;

use crate::symbolic::explorer::{Explorer, Next};
use crate::symbolic::fixed::FixedValues;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::memory::{Byte, Memory};
use crate::symbolic::options::{Options, Progress};
use crate::symbolic::order::Order;
use crate::symbolic::state::{Drawn, First, MapState, Now, Object, Redirect, State};
use crate::symbolic::twin::{Comparison, Twin};
use crate::symbolic::value::Value;

/// Looks for inputs on which two programs of one type differ in verdict, packet, metadata, redirect target, maps, events, traces or tail
/// calls, up to so many. Both use `maps` by the same indices.
#[must_use]
pub fn compare(
    (first, second): (&Verified, &Verified),
    maps: &[MapSpec],
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Comparison {
    let mut explorer = Explorer::new(first, maps, *options);
    explorer.set_second(second, most);
    explorer.run(tell);
    explorer.compared()
}

impl<'a> Explorer<'a> {
    /// Compares the program with a second one: no other goals are looked for.
    pub(crate) fn set_second(&mut self, second: &'a Verified, most: usize) {
        let programs = [self.verified, second];
        self.fixed = FixedValues::of(self.maps, &programs);
        let orders = programs.map(Order::of);
        self.twin = Some(Twin {
            programs,
            orders,
            begun: 0,
            differing: Vec::new(),
            most,
            pairs: 0,
            left: Vec::new(),
        });
        self.open.clear();
    }

    pub(crate) fn twin_mut(&mut self, change: impl FnOnce(&mut Twin<'a>)) {
        if let Some(twin) = &mut self.twin {
            change(twin);
        }
    }

    /// From here on the second program runs.
    pub(crate) fn enter_second(&mut self) {
        if let Some(twin) = &self.twin {
            self.verified = twin.programs[1];
        }
    }

    /// What was found out about two programs.
    pub(crate) fn compared(self) -> Comparison {
        let bounds = self.bounds();
        let (differing, left, pairs) = match self.twin {
            Some(twin) => (twin.differing, twin.left, twin.pairs),
            None => Default::default(),
        };
        Comparison { differing, left, pairs, paths: self.paths, bounds }
    }
}

impl Explorer<'_> {
    /// A program has ended: the second one begins, or what both left is compared.
    pub(crate) fn ended(&mut self, state: &mut State) -> Result<Next, GiveUp> {
        if self.twin.is_none() {
            return self.claimed(state);
        }
        if !std::mem::replace(&mut state.has_ended, true) {
            self.finish_run(state);
            return Ok(Next::End);
        }
        let Some(first) = state.first.clone() else {
            self.begin_second(state)?;
            self.wait(state.clone());
            return Ok(Next::End);
        };
        self.twin_mut(|twin| twin.pairs += 1);
        let differs = self.differs(state, &first)?;
        match self.settled(state, differs)? {
            Some(_) if state.is_elsewhere => {
                return Err(GiveUp::HelperUse("bpf_tail_call", "to a program that is not in the object"));
            }
            Some(other) => {
                let input = self.input(&other)?;
                self.twin_mut(|twin| twin.differing.push(input));
            }
            None => self.same_code(state, &first)?,
        }
        Ok(Next::End)
    }

    /// Keeps what a run leaves, until other paths have come to such an end.
    fn finish_run(&mut self, state: &mut State) {
        let result = state.registers[0];
        state.registers.fill(Value::Unset);
        if state.tail.is_none() {
            state.registers[0] = result;
        }
        state.frames.truncate(1);
        for frame in &mut state.frames {
            frame.stack = Rc::default();
        }
        let mut ended = state.clone();
        // Where it ended decides nothing.
        ended.assignment.forget();
        self.wait(ended);
    }

    /// Fails if the programs may return other codes of one verdict, which decide whether further classifiers run.
    fn same_code(&mut self, state: &State, first: &First) -> Result<(), GiveUp> {
        let result = self.returned_term(state)?;
        let [a, b] = [first.result, result].map(|result| self.terms.extract(result, 0, 32));
        let differs = self.unequal(a, b);
        match self.settled(state, differs)? {
            None => Ok(()),
            Some(_) => Err(GiveUp::Instruction("another code of the same verdict")),
        }
    }

    /// Starts the second program on the path of the first one. What is known of maps from the start stays.
    fn begin_second(&mut self, state: &mut State) -> Result<(), GiveUp> {
        let first = First {
            result: self.returned_term(state)?,
            tail: state.tail.take(),
            context: std::mem::take(&mut state.context),
            packet: state.packet.clone(),
            objects: std::mem::take(&mut state.objects),
            maps: state.maps.clone(),
            redirect: state.redirect.take(),
            sent: std::mem::take(&mut state.sent),
            number: self.twin.as_ref().map_or(0, |twin| twin.begun),
        };
        self.twin_mut(|twin| twin.begun += 1);
        state.has_ended = false;
        state.first = Some(Rc::new(first));
        self.enter_second();
        let start = self.start();
        (state.slot, state.registers, state.frames, state.packet) =
            (0, start.registers, start.frames, start.packet);
        (state.rounds, state.taken) = (Rc::default(), None);
        // Clocks and random numbers begin anew; what is the machine's does not depend on a position alone.
        state.drawn = Drawn { results: state.drawn.results, ..Drawn::default() };
        (state.instructions, state.cost) = (0, 0);
        for map in &mut state.maps {
            let map = Rc::make_mut(map);
            map.room.begin();
            map.retired = 0;
            for element in &mut map.elements {
                (element.now, element.may_be_gone) = (Now::Initial, false);
            }
        }
        Ok(())
    }

    /// Whether the second program leaves something else than the first.
    fn differs(&mut self, state: &mut State, first: &First) -> Result<Term, GiveUp> {
        let result = self.returned_term(state)?;
        // Whoever has the packet next sees the context.
        if first.context != state.context {
            return Err(GiveUp::Instruction("a field of the context that is written differently"));
        }
        let tail = self.other_target(first.tail, state.tail);
        let (fate, redirects) = self.other_fate(first.result, result);
        let target = self.other_target(first.redirect, state.redirect);
        // The program that a tail call leads to may return what redirects the packet, and move its start back.
        let go_on = first.tail.is_some() && state.tail.is_some();
        let target = if go_on { target } else { self.terms.and(redirects, target) };
        let mut all = vec![fate, target, tail];
        self.other_packet(&first.packet, state, go_on, &mut all)?;
        for map in 0..state.maps.len() {
            self.other_elements(map, state, (&first.maps, &first.objects), &mut all)?;
        }
        self.other_sent(first, state, &mut all)?;
        Ok(self.any(&all))
    }

    /// What a program returns; none of its own if it ends with a tail call.
    fn returned_term(&mut self, state: &State) -> Result<Term, GiveUp> {
        match state.tail {
            Some(_) => Ok(self.terms.constant(64, 0)),
            None => self.number(state, Reg::R0),
        }
    }

    pub(crate) fn any(&mut self, conditions: &[Term]) -> Term {
        let mut any = self.terms.bool(false);
        for &condition in conditions {
            any = self.terms.or(any, condition);
        }
        any
    }

    pub(crate) fn unequal(&mut self, a: Term, b: Term) -> Term {
        let same = self.terms.eq(a, b);
        self.terms.not(same)
    }

    /// Whether two results are other codes of frames, and whether one of them redirects the packet.
    fn other_fate(&mut self, a: Term, b: Term) -> (Term, Term) {
        use paceline_frame::Verdict;
        let redirects = [a, b].map(|result| self.stands_for(result, Verdict::Redirect));
        let redirects = self.any(&redirects);
        let other = match self.verified.program().kind.rules().meaning {
            Meaning::Action(_) => {
                let mut all = Vec::new();
                for verdict in Verdict::ALL {
                    let (a, b) = (self.stands_for(a, verdict), self.stands_for(b, verdict));
                    all.push(self.unequal(a, b));
                }
                self.any(&all)
            }
            Meaning::Verdict | Meaning::BytesKept => {
                let (a, b) = (self.terms.extract(a, 0, 32), self.terms.extract(b, 0, 32));
                self.unequal(a, b)
            }
        };
        (other, redirects)
    }

    fn other_target(&mut self, a: Option<Redirect>, b: Option<Redirect>) -> Term {
        match (a, b) {
            (None, None) => self.terms.bool(false),
            (Some(a), Some(b)) if a.map == b.map => {
                let others = [self.unequal(a.number, b.number), self.unequal(a.flags, b.flags)];
                self.any(&others)
            }
            _ => self.terms.bool(true),
        }
    }

    /// Adds whether elements of a map differ from those that another state of maps and objects has; from the start, if it has none.
    pub(crate) fn other_elements(
        &mut self,
        map: usize,
        state: &State,
        (maps, objects): (&[Rc<MapState>], &[Rc<Object>]),
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        if self.maps.get(map).is_some_and(MapSpec::is_constant) {
            return Ok(());
        }
        let size = self.maps.get(map).map_or(0, |map| i64::from(map.value_size));
        let is_array = self.maps.get(map).is_some_and(|map| map.kind.is_array());
        for (index, element) in state.maps[map].elements.iter().enumerate() {
            let before = maps.get(map).and_then(|map| map.elements.get(index));
            let before = before.map_or(Now::Initial, |element| element.now);
            let was_there = element.was_there || is_array;
            let object = |objects: &[Rc<Object>], now: Now| match now {
                Now::There(object) => objects.get(object).cloned(),
                _ => None,
            };
            let (old, new) = (object(objects, before), object(&state.objects, element.now));
            let is_there = |now: Now| match now {
                Now::There(_) => true,
                Now::Absent => false,
                Now::Initial => was_there,
            };
            match (is_there(before), is_there(element.now)) {
                (false, false) => {}
                (true, true) => self.other_value((map, index), size, old, new, all)?,
                _ => all.push(self.terms.bool(true)),
            }
        }
        Ok(())
    }

    /// Adds whether two values of an element differ; none is the one from the start.
    fn other_value(
        &mut self,
        (map, element): (usize, usize),
        size: i64,
        old: Option<Rc<Object>>,
        new: Option<Rc<Object>>,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        let initial = || Rc::new(Object::of_element(map, element));
        let (old, new) = (old.unwrap_or_else(initial), new.unwrap_or_else(initial));
        let kind = self.spec(map)?.kind;
        if kind.is_per_cpu() && old.initial != new.initial {
            // A value that is made anew is zero for all other CPUs.
            return Err(GiveUp::Map(kind, "the values of other CPUs"));
        }
        let offsets: BTreeSet<i64> = match old.initial == new.initial {
            true => written(&old.written).chain(written(&new.written)).collect(),
            false => (0..size).collect(),
        };
        for offset in offsets {
            let (a, b) = (self.object_byte(&old, offset)?, self.object_byte(&new, offset)?);
            let (Byte::Number(a), Byte::Number(b)) = (a, b) else { return Err(GiveUp::Address) };
            all.push(self.unequal(a, b));
        }
        Ok(())
    }
}

/// The offsets that were written.
pub(crate) fn written(memory: &Memory) -> impl Iterator<Item = i64> + '_ {
    memory.offsets()
}
