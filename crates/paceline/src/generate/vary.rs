//! Inputs whose bytes differ from each other and from zero, where that does not change which sides are taken: swapped, shifted and lost bytes
//! show in what comes out.

use paceline_analysis::symbolic::{Decided, Edge, Element, Input, Role, Side, roles, set_checksums};
use paceline_spec::{MapFlags, MapSpec};

use super::confirm::Confirmer;
use super::found::{Confirmed, GenerateError};
use super::watch::Trace;

/// Most runs that are made for one input.
const RUNS: usize = 250;

/// Values of more bytes are left as they are.
const LARGEST_VALUE: usize = 4096;

/// Bytes are numbered by this prime: an address that begins with one is of one machine.
const PRIME: usize = 223;

/// Bytes that an input is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Those near each other differ, and all have low bits, which masks often leave.
    Plain,
    /// All bits of those are inverted.
    Inverted,
}

impl Pattern {
    /// The byte for a place.
    const fn byte(self, place: usize) -> u8 {
        let byte = ((place * 53 + 10) % PRIME) as u8 | 3;
        match self {
            Self::Plain => byte,
            Self::Inverted => !byte,
        }
    }

    /// An interface, a queue and a time.
    const fn numbers(self) -> (u32, u16, u64) {
        match self {
            Self::Plain => (3, 2, 1_234_567_890_123_456),
            Self::Inverted => (12, 9, 9_876_543_210_987_654),
        }
    }
}

/// A place of an input that can be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A byte of the packet.
    Packet(usize),
    /// A byte of a value, by map, number of the element, and offset.
    Value(usize, usize, usize),
    Ingress,
    Queue,
    Time,
}

/// A search for the places of an input that can be filled.
struct Filling<'c, 'a> {
    confirmer: &'c Confirmer<'a>,
    decided: &'c Decided,
    /// The boundary that its run must come to.
    edge: Option<(usize, Edge)>,
    pattern: Pattern,
    /// The input, with all elements that its run asks for.
    base: Input,
    /// The sides that its run takes.
    sides: Vec<Side>,
    places: Vec<Place>,
    runs: usize,
    best: Option<Confirmed>,
}

impl Confirmer<'_> {
    /// The input with all places filled that change nothing about the sides that its run takes; none if there are none. What is decided stays.
    pub(super) fn filled(
        &self,
        confirmed: &Confirmed,
        decided: &Decided,
        edge: Option<(usize, Edge)>,
        pattern: Pattern,
    ) -> Result<Option<Confirmed>, GenerateError> {
        let Ok((trace, _)) = self.trial(&confirmed.input)? else { return Ok(None) };
        let base = self.with_elements(&confirmed.input, &trace);
        let mut filling = Filling {
            confirmer: self,
            decided,
            edge,
            pattern,
            base,
            sides: trace.sides,
            places: Vec::new(),
            runs: RUNS,
            best: None,
        };
        let places = filling.all();
        filling.keep(&places)?;
        for &offset in decided.packet.iter().filter(|offset| **offset < confirmed.input.packet.len()) {
            filling.keep_bits(offset)?;
        }
        if pattern == Pattern::Inverted {
            // Bits of types, versions and lengths that no comparison looks at may get into one by a mask that is wrong.
            for (offset, role) in roles(&confirmed.input.packet).into_iter().enumerate() {
                if role == Role::Structure && !decided.packet.contains(&offset) {
                    filling.keep_bits(offset)?;
                }
            }
        }
        if !decided.other {
            filling.numbers()?;
        }
        filling.without_idle(&confirmed.input)
    }

    /// The input with a longer packet, if it is at the boundary of a comparison, stays there and takes the same sides: on the other side more bytes
    /// may be looked for.
    pub(super) fn longer(
        &self,
        confirmed: &Confirmed,
        edge: Option<(usize, Edge)>,
    ) -> Result<Option<Confirmed>, GenerateError> {
        const LONG: usize = 320;
        let Some(edge) = edge.filter(|_| confirmed.input.packet.len() < LONG) else { return Ok(None) };
        let mut input = confirmed.input.clone();
        input.packet.resize(LONG, 0);
        let run = self.run(&input)?.ok();
        let is_same = |run: &Confirmed| {
            run.edges.contains(&edge) && run.sides == confirmed.sides && run.verdict == confirmed.verdict
        };
        Ok(run.map(|(_, run)| run).filter(is_same))
    }

    /// The input with all elements of arrays that its run asked for.
    fn with_elements(&self, input: &Input, trace: &Trace) -> Input {
        let mut input = input.clone();
        for ((map, key), value) in &trace.asked {
            let (Some(spec), Some(value)) = (self.object.maps().get(*map), value) else { continue };
            let elements = input.maps.entry(*map).or_default();
            let size = spec.value_size as usize;
            let is_new = elements.iter().all(|element| element.key != *key);
            if is_new && spec.kind.is_array() && is_open(spec) && (1..=LARGEST_VALUE).contains(&size) {
                elements.push(Element { key: key.clone(), value: value[..size].to_vec() });
            }
        }
        input.maps.retain(|_, elements| !elements.is_empty());
        input
    }
}

/// Whether a map holds bytes that may be others when a program runs.
fn is_open(map: &MapSpec) -> bool {
    map.kind.holds_bytes() && !(map.frozen || map.flags.contains(MapFlags::RDONLY_PROG))
}

impl Filling<'_, '_> {
    fn all(&self) -> Vec<Place> {
        let Self { confirmer, decided, .. } = self;
        let mut places = Vec::new();
        for (offset, role) in roles(&self.base.packet).into_iter().enumerate() {
            if role == Role::Content && !decided.packet.contains(&offset) {
                places.push(Place::Packet(offset));
            }
        }
        for (&map, elements) in &self.base.maps {
            let spec = confirmer.object.maps().get(map);
            if !spec.is_some_and(is_open) {
                continue;
            }
            // Those that only fill the map up are many.
            for (index, Element { key, value }) in elements.iter().enumerate().take(16) {
                for byte in 0..value.len().min(LARGEST_VALUE) {
                    if !decided.values.contains(&(map, key.clone(), byte)) {
                        places.push(Place::Value(map, index, byte));
                    }
                }
            }
        }
        places
    }

    /// The input with places filled.
    fn with(&self, places: &[Place]) -> Input {
        let mut input = self.base.clone();
        let mut changes_packet = false;
        let (ingress, queue, time_ns) = self.pattern.numbers();
        for &place in places {
            match place {
                Place::Packet(offset) => {
                    input.packet[offset] = self.pattern.byte(offset);
                    changes_packet = true;
                }
                Place::Value(map, element, place) => {
                    if let Some(element) = input.maps.get_mut(&map).and_then(|all| all.get_mut(element)) {
                        let first = element.key.first().copied().map_or(0, usize::from);
                        let number = self.pattern.byte(97 + map * 29 + first * 13 + place);
                        // Numbers of 64 bits stay below those that TOML does not have.
                        element.value[place] = if place % 8 == 7 { number / 2 } else { number };
                    }
                }
                Place::Ingress => input.ingress = ingress,
                Place::Queue => input.queue = queue,
                Place::Time => input.time_ns = time_ns,
            }
        }
        if changes_packet {
            set_checksums(&mut input.packet, |byte| !self.decided.packet.contains(&byte));
        }
        input
    }

    /// Runs the input with some places more: what came of it, if it takes the same sides.
    fn trial(&mut self, places: &[Place]) -> Result<Option<Confirmed>, GenerateError> {
        self.runs = self.runs.saturating_sub(1);
        let all: Vec<_> = self.places.iter().chain(places).copied().collect();
        self.same(&self.with(&all))
    }

    fn same(&self, input: &Input) -> Result<Option<Confirmed>, GenerateError> {
        let run = self.confirmer.trial(input)?;
        let is_same = |trace: &Trace| {
            trace.sides == self.sides && self.edge.is_none_or(|edge| trace.edges.contains(&edge))
        };
        Ok(run.ok().filter(|(trace, _)| is_same(trace)).map(|(_, confirmed)| confirmed))
    }

    /// Keeps those of some places that can be filled.
    fn keep(&mut self, places: &[Place]) -> Result<(), GenerateError> {
        if places.is_empty() || self.runs == 0 {
            return Ok(());
        }
        if let Some(confirmed) = self.trial(places)? {
            self.places.extend(places);
            self.best = Some(confirmed);
        } else if let [Place::Packet(offset)] = places {
            self.keep_bits(*offset)?;
        } else if places.len() > 1 {
            let (first, second) = places.split_at(places.len() / 2);
            self.keep(first)?;
            self.keep(second)?;
        }
        Ok(())
    }

    /// Changes those bits of a byte of the packet that can be, where the whole byte cannot be filled: a mask may decide.
    fn keep_bits(&mut self, offset: usize) -> Result<(), GenerateError> {
        for bit in 0..8 {
            if self.runs == 0 {
                return Ok(());
            }
            let before = self.base.packet[offset];
            self.base.packet[offset] ^= 1 << bit;
            match self.trial(&[])? {
                Some(confirmed) => self.best = Some(confirmed),
                None => self.base.packet[offset] = before,
            }
        }
        Ok(())
    }

    /// Fills the numbers that show in what comes out.
    fn numbers(&mut self) -> Result<(), GenerateError> {
        for place in [Place::Ingress, Place::Queue, Place::Time] {
            let Some(found) = self.trial(&[place])? else { continue };
            if !self.best.as_ref().is_some_and(|best| same_outcome(best, &found)) {
                self.places.push(place);
                self.best = Some(found);
            }
        }
        Ok(())
    }

    /// What was found, without the elements that neither the input has nor the outcome shows.
    fn without_idle(self, input: &Input) -> Result<Option<Confirmed>, GenerateError> {
        let Some(mut best) = self.best.clone() else { return Ok(None) };
        for (map, elements) in self.base.maps.clone() {
            let is_given = |key: &[u8]| {
                input.maps.get(&map).is_some_and(|all| all.iter().any(|element| element.key == key))
            };
            for Element { key, .. } in elements.iter().filter(|element| !is_given(&element.key)) {
                let mut less = best.input.clone();
                if let Some(all) = less.maps.get_mut(&map) {
                    all.retain(|element| element.key != *key);
                }
                less.maps.retain(|_, all| !all.is_empty());
                if let Some(found) = self.same(&less)?
                    && same_outcome(&best, &found)
                {
                    best = found;
                }
            }
        }
        // With maps of its own it must fare alike.
        let alone = self.confirmer.run(&best.input)?;
        let alone =
            alone.ok().filter(|(trace, found)| trace.sides == self.sides && same_outcome(&best, found));
        Ok(alone.map(|(_, found)| found).filter(|found| found.input != *input))
    }
}

/// Whether two inputs fare alike.
fn same_outcome(a: &Confirmed, b: &Confirmed) -> bool {
    let left = |run: &Confirmed| {
        let Confirmed { verdict, returned, bytes, metadata, redirect, changes, events, traces, .. } =
            run.clone();
        (verdict, returned, bytes, metadata, redirect, changes, events, traces)
    };
    left(a) == left(b)
}
