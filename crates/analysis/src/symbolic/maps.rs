//! What maps hold: elements that the program asks for, which may be there from the start, with keys compared as terms.

use std::rc::Rc;

use crate::solver::Term;
use paceline_spec::{Errno, InitialValue, MapKind, MapSpec};

use crate::symbolic::alu;
use crate::symbolic::bounds::Assumption;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::Meets;
use crate::symbolic::source::Source;
use crate::symbolic::state::{ElementState, Initial, Now, State};
use crate::symbolic::value::Region;

/// The initial bytes of a key's value, if the object gives some.
pub(crate) fn initial_value<'m>(map: &'m MapSpec, key: &[u8]) -> Option<&'m [u8]> {
    map.contents.iter().find_map(|(other, value)| match value {
        InitialValue::Bytes(bytes) if other == key => Some(bytes.as_slice()),
        _ => None,
    })
}

/// Notes that an LRU map may have given up any element but one.
fn others_may_be_gone(state: &mut State, map: usize, element: usize) {
    for (index, other) in Rc::make_mut(&mut state.maps[map]).elements.iter_mut().enumerate() {
        other.may_be_gone = index != element;
    }
}

/// Kinds whose values the program may look up.
fn is_modelled(kind: MapKind) -> bool {
    kind.is_array() || kind.is_keyed()
}

impl Explorer<'_> {
    pub(crate) fn spec(&self, map: usize) -> Result<&MapSpec, GiveUp> {
        self.maps.get(map).ok_or(GiveUp::Instruction("a map that does not exist"))
    }

    /// The memory of the only value of a map of variables.
    pub(crate) fn only_value(&mut self, state: &mut State, map: usize) -> Result<Region, GiveUp> {
        let key = vec![self.terms.constant(8, 0); 4];
        if self.fixed.has(map) {
            return Ok(Region::Fixed(self.fixed.number(map, key)));
        }
        let element = self.element(state, map, key)?;
        let object = self.there(state, map, element)?.ok_or(GiveUp::Instruction("a map without a value"))?;
        Ok(Region::Object(object))
    }

    /// The element of a key, which is within the map if that is an array.
    fn element(&mut self, state: &mut State, map: usize, key: Vec<Term>) -> Result<usize, GiveUp> {
        let kind = self.spec(map)?.kind;
        let known = Rc::clone(&state.maps[map]);
        for (index, element) in known.elements.iter().enumerate() {
            let same = self.same_key(&element.key, &key);
            if self.decide(state, same, 0) {
                return Ok(index);
            }
            if kind.has_prefixes() {
                // One element may match both keys.
                self.guess(state, GiveUp::Map(kind, "a second look-up"));
            }
        }
        let elements = &mut Rc::make_mut(&mut state.maps[map]).elements;
        elements.push(ElementState { key, now: Now::Initial, was_there: false, may_be_gone: false });
        Ok(elements.len() - 1)
    }

    pub(crate) fn same_key(&mut self, a: &[Term], b: &[Term]) -> Term {
        // By words, in which terms are recognized.
        let pairs = a.chunks(8).zip(b.chunks(8));
        let mut all = self.terms.bool(true);
        for (a, b) in pairs {
            let (a, b) = (alu::word(&mut self.terms, a), alu::word(&mut self.terms, b));
            let same = self.terms.eq(a, b);
            all = self.terms.and(all, same);
        }
        all
    }

    /// The object of an element's value, if the element is there.
    fn there(&mut self, state: &mut State, map: usize, element: usize) -> Result<Option<usize>, GiveUp> {
        let known = &state.maps[map].elements[element];
        let (now, may_be_gone) = (known.now, known.may_be_gone);
        match now {
            Now::There(object) => {
                if may_be_gone {
                    let kind = self.spec(map)?.kind;
                    self.guess(state, GiveUp::Map(kind, "a look-up after an insertion"));
                }
                return Ok(Some(object));
            }
            Now::Absent => return Ok(None),
            Now::Initial => {}
        }
        let spec = self.spec(map)?;
        let initial = match spec.is_constant() {
            true => {
                self.assume(Assumption::Constants);
                let key = state.maps[map].elements[element].key.clone();
                let key: Vec<_> = key.into_iter().map(|byte| self.concrete(state, byte) as u8).collect();
                let bytes = initial_value(self.spec(map)?, &key);
                if bytes.is_none() && !self.spec(map)?.kind.is_array() {
                    return Ok(self.set_now(state, map, element, Now::Absent));
                }
                Initial::Bytes(bytes.unwrap_or_default().into())
            }
            false => Initial::Element { map, element },
        };
        let may_be_absent = !self.spec(map)?.kind.is_array() && !matches!(initial, Initial::Bytes(_));
        if may_be_absent && !self.is_present(state, map, element)? {
            return Ok(self.set_now(state, map, element, Now::Absent));
        }
        let object = state.new_object(initial);
        Ok(self.set_now(state, map, element, Now::There(object)))
    }

    /// Whether an element that may be absent is there from the start, which no more elements are than fit. An LRU map gives up others.
    fn is_present(&mut self, state: &mut State, map: usize, element: usize) -> Result<bool, GiveUp> {
        let spec = self.spec(map)?;
        let (kind, entries, counts) = (spec.kind, spec.max_entries, !spec.kind.has_indices());
        let is_known = state.maps[map].elements[element].was_there;
        if counts && !is_known && !state.maps[map].room.allows_another(entries) {
            if kind.is_lru() {
                self.guess(state, GiveUp::Map(kind, "a look-up among more elements than fit"));
            }
            return Ok(false);
        }
        let present = self.sources.term(&mut self.terms, Source::Present { map, element });
        if !self.decide(state, present, 0) {
            return Ok(false);
        }
        let map = Rc::make_mut(&mut state.maps[map]);
        // Another program may have asked for it.
        if counts && !map.elements[element].was_there {
            map.room.is_there();
        }
        map.elements[element].was_there = true;
        Ok(true)
    }

    fn set_now(&mut self, state: &mut State, map: usize, element: usize, now: Now) -> Option<usize> {
        Rc::make_mut(&mut state.maps[map]).elements[element].now = now;
        match now {
            Now::There(object) => Some(object),
            _ => None,
        }
    }

    /// Whether a key can be in the map at all: an index below its size, a prefix that is not too long.
    fn is_valid(&mut self, state: &mut State, map: usize, key: &[Term]) -> Result<bool, GiveUp> {
        let spec = self.spec(map)?;
        let (kind, entries, key_size) = (spec.kind, spec.max_entries, spec.key_size);
        if !kind.has_indices() && !kind.has_prefixes() {
            return Ok(true);
        }
        let number = alu::word(&mut self.terms, key.get(..4).unwrap_or_default());
        let limit = if kind.has_indices() { entries } else { (key_size - 4) * 8 + 1 };
        let limit = self.terms.constant(32, u64::from(limit));
        let is_below = self.terms.ult(number, limit);
        Ok(self.decide(state, is_below, 0))
    }

    /// `bpf_map_lookup_elem`: the memory of the value, or none.
    pub(crate) fn look_up(
        &mut self,
        state: &mut State,
        map: usize,
        key: Vec<Term>,
    ) -> Result<Option<Region>, GiveUp> {
        let kind = self.spec(map)?.kind;
        if !is_modelled(kind) {
            return Err(GiveUp::Map(kind, "bpf_map_lookup_elem"));
        }
        if !self.is_valid(state, map, &key)? {
            return Ok(None);
        }
        if self.fixed.has(map) {
            return Ok(Some(Region::Fixed(self.fixed.number(map, key))));
        }
        let element = self.element(state, map, key)?;
        Ok(self.there(state, map, element)?.map(Region::Object))
    }

    /// `bpf_map_update_elem`: 0 or a negative error number, and what it met.
    pub(crate) fn update(
        &mut self,
        state: &mut State,
        map: usize,
        key: Vec<Term>,
        value: &[Term],
        flags: u64,
    ) -> Result<(i64, Meets), GiveUp> {
        const NO_EXIST: u64 = 1;
        const EXIST: u64 = 2;
        let spec = self.spec(map)?;
        let kind = spec.kind;
        if !is_modelled(kind) || kind.has_prefixes() {
            return Err(GiveUp::Map(kind, "bpf_map_update_elem"));
        }
        if self.fixed.has(map) {
            return Err(GiveUp::Map(kind, "an update of what no program writes"));
        }
        if flags > EXIST {
            return Err(GiveUp::HelperUse("bpf_map_update_elem", "with such flags"));
        }
        if !self.is_valid(state, map, &key)? {
            return Ok((-i64::from(Errno::E2BIG.0), Meets::NotFound));
        }
        if kind.is_lru() && flags != 0 {
            // Before the kernel looks for the key, it takes a free element, for which it may remove any other one, also that of the key.
            self.guess(state, GiveUp::Map(kind, "an update with flags"));
        }
        let element = self.element(state, map, key)?;
        if kind.is_array() {
            if flags == NO_EXIST {
                return Ok((-i64::from(Errno::EEXIST.0), Meets::Found));
            }
            let object = self.there(state, map, element)?;
            return Ok((self.fill(state, object, value), Meets::Found));
        }
        match self.there(state, map, element)? {
            Some(_) if flags == NO_EXIST => Ok((-i64::from(Errno::EEXIST.0), Meets::Found)),
            None if flags == EXIST => Ok((-i64::from(Errno::ENOENT.0), Meets::NotFound)),
            // The kernel takes a free element first, for which it may remove another one.
            Some(_) if kind.is_lru() && self.compares_maps() => {
                Err(GiveUp::Map(kind, "an update that may remove another element"))
            }
            // Values per CPU are changed in place.
            Some(object) if kind.is_per_cpu() => {
                if kind.is_lru() {
                    others_may_be_gone(state, map, element);
                }
                Ok((self.fill(state, Some(object), value), Meets::Found))
            }
            Some(_) => {
                self.retire(state, map);
                if kind.is_lru() {
                    others_may_be_gone(state, map, element);
                }
                Ok((self.put(state, map, element, value), Meets::Found))
            }
            None if kind.is_lru() => {
                self.make_room(state, map, element)?;
                Ok((self.put(state, map, element, value), Meets::NotFound))
            }
            None if self.is_full(state, map)? => Ok((-i64::from(Errno::E2BIG.0), Meets::Full)),
            None => {
                Rc::make_mut(&mut state.maps[map]).room.add();
                Ok((self.put(state, map, element, value), Meets::NotFound))
            }
        }
    }

    /// Gives an element a new value: 0.
    fn put(&mut self, state: &mut State, map: usize, element: usize, value: &[Term]) -> i64 {
        let object = state.new_object(Initial::Zero);
        self.set_now(state, map, element, Now::There(object));
        self.fill(state, Some(object), value)
    }

    /// Whether a map without eviction is full; if it may be, that path comes later.
    fn is_full(&mut self, state: &mut State, map: usize) -> Result<bool, GiveUp> {
        let entries = self.spec(map)?.max_entries;
        if let Some(is_full) = state.maps[map].room.is_full(entries) {
            return Ok(is_full);
        }
        let mut other = state.clone();
        Rc::make_mut(&mut other.maps[map]).room.assume(true);
        self.keep(other);
        Rc::make_mut(&mut state.maps[map]).room.assume(false);
        Ok(false)
    }

    /// Adds an element to an LRU map, which has room for it; the path in which it gives up another one is not followed, but the others
    /// may be gone.
    fn make_room(&mut self, state: &mut State, map: usize, element: usize) -> Result<(), GiveUp> {
        let spec = self.spec(map)?;
        let (kind, entries) = (spec.kind, spec.max_entries);
        self.retire(state, map);
        if self.compares_maps() {
            // Another element may be gone after the run.
            self.guess(state, GiveUp::Map(kind, "an insertion that may remove another element"));
        }
        let known = Rc::make_mut(&mut state.maps[map]);
        if known.room.is_full(entries) == Some(true) {
            return Err(GiveUp::Map(kind, "an insertion that removes another element"));
        }
        known.room.assume(false);
        known.room.add();
        others_may_be_gone(state, map, element);
        Ok(())
    }

    /// Notes that an element's slot waits for the end of the run. Maps have some slots more than elements, not for any number of them: a
    /// further update may fail for lack of memory.
    fn retire(&mut self, state: &mut State, map: usize) {
        const RESERVE: u32 = 15;
        if state.maps[map].retired >= RESERVE {
            self.guess(state, GiveUp::HelperUse("bpf_map_update_elem", "after so many others"));
        }
        self.assume(Assumption::FewReplaced);
        Rc::make_mut(&mut state.maps[map]).retired += 1;
    }

    fn fill(&mut self, state: &mut State, object: Option<usize>, value: &[Term]) -> i64 {
        if let Some(object) = object.and_then(|object| state.object_mut(object)) {
            for (offset, byte) in (0..).zip(value) {
                object.written.set(offset, crate::symbolic::memory::Byte::Number(*byte));
            }
        }
        0
    }

    /// `bpf_map_delete_elem`: 0 or a negative error number.
    pub(crate) fn delete(&mut self, state: &mut State, map: usize, key: Vec<Term>) -> Result<i64, GiveUp> {
        let kind = self.spec(map)?.kind;
        if !is_modelled(kind) || kind.has_prefixes() {
            return Err(GiveUp::Map(kind, "bpf_map_delete_elem"));
        }
        if kind.is_array() {
            return Ok(-i64::from(Errno::EINVAL.0));
        }
        let element = self.element(state, map, key)?;
        match self.there(state, map, element)? {
            Some(_) => {
                self.retire(state, map);
                let map = Rc::make_mut(&mut state.maps[map]);
                map.elements[element].now = Now::Absent;
                map.elements[element].may_be_gone = false;
                map.room.remove();
                Ok(0)
            }
            None => Ok(-i64::from(Errno::ENOENT.0)),
        }
    }

    /// Whether a map of devices, CPUs or sockets has a target at an index.
    pub(crate) fn has_target(
        &mut self,
        state: &mut State,
        map: usize,
        key: Vec<Term>,
    ) -> Result<bool, GiveUp> {
        if !self.is_valid(state, map, &key)? {
            return Ok(false);
        }
        let element = self.element(state, map, key)?;
        match state.maps[map].elements[element].now {
            Now::There(_) => return Ok(true),
            Now::Absent => return Ok(false),
            Now::Initial => {}
        }
        let is_present = self.is_present(state, map, element)?;
        let now = match is_present {
            true => Now::There(state.new_object(Initial::Element { map, element })),
            false => Now::Absent,
        };
        self.set_now(state, map, element, now);
        Ok(is_present)
    }
}
