//! Bytes of the packet at places that are not known. Each is a variable of its own, which says less than is true: that two are the same
//! byte where their places are the same is said only of those for which a model has it otherwise. So a proof holds, and an input is one. Products and
//! values of maps to which no program writes are settled in the same way.

use std::collections::{BTreeMap, HashMap};

use crate::solver::{Answer, Model, Term};

use crate::symbolic::alu;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::fixed::FixedValue;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::memory::Byte;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Assignment, State};

/// Most models that are tried for one question.
const MOST_TRIALS: usize = 200;

/// Offsets from there on are not those of packets.
const FARTHEST: u64 = 0xffff;

/// Most places to which one is compared when it is read.
const MOST_COMPARED: usize = 4;

/// What is read where it is not known.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// A byte of the packet at this place.
    Packet(Term),
    /// A product.
    Product(Term),
    /// A byte of a value to which no program writes: its number, and the offset.
    Fixed(usize, u32),
}

impl Explorer<'_> {
    /// Bytes of the packet at a place that is not known, if two programs are compared and none of the bytes that may lie there was written.
    pub(crate) fn unknown_bytes(&mut self, state: &State, place: Term, len: usize) -> Option<Vec<Byte>> {
        let packet = &state.packet;
        let is_plain = packet.floor.is_none() && packet.start.min(packet.meta) >= 0;
        if self.twin.is_none() || self.terms.value(place).is_some() || !is_plain {
            return None;
        }
        let (least, most) = self.terms.range(place);
        let may_be_there = |offset: i64| {
            let offset = offset.cast_unsigned();
            offset <= most.saturating_add(len as u64 - 1) && offset >= least
        };
        if packet.written.offsets().any(may_be_there) {
            return None;
        }
        let place = self.same_place(state, place);
        Some((0..len as u64).map(|byte| Byte::Number(self.unknown_byte(place, byte))).collect())
    }

    fn unknown_byte(&mut self, place: Term, byte: u64) -> Term {
        let byte = self.terms.constant(64, byte);
        let place = self.terms.add(place, byte);
        let source = match self.terms.value(place) {
            Some(place) => Source::Packet(place as u32),
            None => Source::PacketAt(place),
        };
        self.sources.term(&mut self.terms, source)
    }

    /// A place at which bytes were read and that is the same on this path, so that the same bytes are the same terms.
    fn same_place(&mut self, state: &State, place: Term) -> Term {
        if self.sources.known(Source::PacketAt(place)).is_some() {
            return place;
        }
        let value = state.assignment.value(&self.terms, place);
        let number = self.terms.constant(64, value);
        let terms = &self.terms;
        let is_near = |other: &&Term| state.assignment.value(terms, **other) == value;
        let mut others = vec![number];
        others.extend(self.places.iter().rev().filter(is_near).take(MOST_COMPARED));
        for other in others {
            let differs = self.unequal(place, other);
            if self.try_to_ask(&state.path, &state.assignment.model, differs) == Answer::Unsat {
                return other;
            }
        }
        self.places.push(place);
        place
    }

    /// A path on which a condition holds as well, with a model in which bytes at the same place are the same; `None` if there is none.
    pub(crate) fn settled(&mut self, state: &State, condition: Term) -> Result<Option<State>, GiveUp> {
        let mut asked = condition;
        for _ in 0..MOST_TRIALS {
            let model = match self.ask(&state.path, &state.assignment.model, asked) {
                Answer::Sat(model) => model,
                Answer::Unsat => return Ok(None),
                Answer::Unknown(unknown) => return Err(GiveUp::Solver(unknown)),
            };
            // Keys of elements become those of the input.
            let keys = state.maps.iter().flat_map(|map| map.elements.iter().flat_map(|element| &element.key));
            let all: Vec<_> = state.path.iter().chain([&asked]).chain(keys).copied().collect();
            let reads = self.reads(all.clone());
            let model = self.with_products(&reads, model, &all[..=state.path.len()]);
            let wrong = self.contradictions(&reads, &model);
            if wrong.is_empty() {
                let mut other = state.clone();
                other.path.push(asked);
                let model = self.with_places(&reads, model, &mut other)?;
                other.assignment = Assignment::new(model);
                return Ok(Some(other));
            }
            let wrong = self.terms.all(wrong);
            asked = self.terms.and(asked, wrong);
        }
        Err(GiveUp::Instruction("a packet read at so many places"))
    }

    /// Whether some packet takes a path, as far as that is known.
    pub(crate) fn may_be_taken(&mut self, state: &State) -> bool {
        if !self.has_unknown() || self.limit().is_some() {
            return true;
        }
        let (path, last) = match state.path.split_last() {
            Some((last, path)) if state.pending => (path.to_vec(), *last),
            _ => (state.path.clone(), self.terms.bool(true)),
        };
        let checked = State { path, ..state.clone() };
        !matches!(self.settled(&checked, last), Ok(None))
    }

    /// What is read where it is not known, of conditions and of what those places, indices and factors depend on, with its variable. Places by number
    /// come first, and the rest in the order in which it was first read.
    fn reads(&mut self, mut open: Vec<Term>) -> Vec<(Read, Term)> {
        if !self.has_unknown() {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        while let Some(term) = open.pop() {
            for &var in self.terms.support(term).iter() {
                let variable = self.terms.of_var(var);
                let (read, is_number, depends) = match self.sources.of(var) {
                    Some(Source::Packet(place)) => {
                        (Read::Packet(self.terms.constant(64, u64::from(place))), true, Vec::new())
                    }
                    Some(Source::PacketAt(place)) => (Read::Packet(place), false, vec![place]),
                    Some(Source::Product(product, _)) => (Read::Product(product), false, vec![product]),
                    Some(Source::Fixed { value, byte }) => {
                        let key = self.fixed.get(value).map(|value| value.key.clone()).unwrap_or_default();
                        (Read::Fixed(value, byte), false, key)
                    }
                    _ => continue,
                };
                if found.insert((!is_number, variable), read).is_none() {
                    open.extend(depends);
                }
            }
        }
        found.into_iter().map(|((_, variable), read)| (read, variable)).collect()
    }

    /// Whether something is read that is not known.
    fn has_unknown(&self) -> bool {
        !self.places.is_empty() || self.has_products || !self.fixed.is_empty()
    }

    /// A model in which products are those of their factors, if conditions hold in it too; else the same model.
    fn with_products(&mut self, reads: &[(Read, Term)], model: Model, conditions: &[Term]) -> Model {
        let mut other = model.clone();
        // Variables of factors are older.
        for &(read, variable) in reads {
            if let Read::Product(product) = read {
                let value = self.terms.evaluate(&other, product);
                other.set(self.terms.support(variable)[0], value);
            }
        }
        let assignment = Assignment::new(other.clone());
        let holds = conditions.iter().all(|condition| assignment.value(&self.terms, *condition) == 1);
        if holds { other } else { model }
    }

    /// What does not hold in a model, but of all packets and maps: that what is read at two places is the same if the places are, and that a product
    /// is that of its factors.
    fn contradictions(&mut self, reads: &[(Read, Term)], model: &Model) -> Vec<Term> {
        let (mut bytes, mut values) = (BTreeMap::<u64, (Term, Term)>::new(), HashMap::new());
        let mut wrong = Vec::new();
        let assignment = Assignment::new(model.clone());
        for &(read, byte) in reads {
            let value = assignment.value(&self.terms, byte);
            match read {
                Read::Packet(place) => {
                    let at = assignment.value(&self.terms, place);
                    let Some(&(other, known)) = bytes.get(&at) else {
                        bytes.insert(at, (place, byte));
                        continue;
                    };
                    if value != assignment.value(&self.terms, known) {
                        let (apart, same) = (self.unequal(place, other), self.terms.eq(byte, known));
                        wrong.push(self.terms.or(apart, same));
                    }
                }
                Read::Product(product) => {
                    if value != assignment.value(&self.terms, product) {
                        wrong.push(self.terms.eq(byte, product));
                    }
                }
                Read::Fixed(fixed, offset) => {
                    let Some(FixedValue { map, key }) = self.fixed.get(fixed).cloned() else { continue };
                    let at: Vec<u64> = key.iter().map(|byte| assignment.value(&self.terms, *byte)).collect();
                    let Some((other, known)) = values.insert((map, at, offset), (key.clone(), byte)) else {
                        continue;
                    };
                    if value != assignment.value(&self.terms, known) {
                        let equal = self.same_key(&key, &other);
                        let (apart, same) = (self.terms.not(equal), self.terms.eq(byte, known));
                        wrong.push(self.terms.or(apart, same));
                    }
                }
            }
        }
        wrong
    }

    /// Adds to a path where the unknown places are in a model, and that their bytes are those by number, to which the model gives values; that
    /// products are those of their factors; and the elements whose values are read.
    fn with_places(
        &mut self,
        reads: &[(Read, Term)],
        mut model: Model,
        state: &mut State,
    ) -> Result<Model, GiveUp> {
        let assignment = Assignment::new(model.clone());
        for &(read, byte) in reads {
            let value = assignment.value(&self.terms, byte);
            let known = match read {
                Read::Packet(place) if self.terms.value(place).is_some() => continue,
                Read::Packet(place) => {
                    let at = assignment.value(&self.terms, place);
                    if at > FARTHEST {
                        return Err(GiveUp::Instruction("a packet read so far behind its start"));
                    }
                    let number = self.terms.constant(64, at);
                    state.path.push(self.terms.eq(place, number));
                    self.sources.term(&mut self.terms, Source::Packet(at as u32))
                }
                Read::Product(product) => {
                    state.path.push(self.terms.eq(byte, product));
                    continue;
                }
                Read::Fixed(fixed, offset) => {
                    let Some(FixedValue { map, key }) = self.fixed.get(fixed).cloned() else { continue };
                    let mut numbers = Vec::new();
                    for term in key {
                        let number = assignment.value(&self.terms, term);
                        let number = self.terms.constant(8, number);
                        state.path.push(self.terms.eq(term, number));
                        numbers.push(number);
                    }
                    // A choice may have the value of an element of another path, which this one does not ask for.
                    let index = alu::word(&mut self.terms, &numbers);
                    let entries = self.maps.get(map).map_or(0, |map| u64::from(map.max_entries));
                    if self.terms.value(index).is_none_or(|index| index >= entries) {
                        continue;
                    }
                    let element = state.element_at(map, numbers);
                    self.sources.term(&mut self.terms, Source::Value { map, element, byte: offset })
                }
            };
            model.set(self.terms.support(known)[0], value);
            state.path.push(self.terms.eq(byte, known));
        }
        Ok(model)
    }
}
