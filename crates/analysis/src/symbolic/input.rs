//! Inputs from models: packets, elements of maps, the time, a seed.

use std::collections::{BTreeMap, BTreeSet};

use crate::solver::{Answer, Model, Term};
use paceline_spec::{ElementKind, MapKind, MapSpec, ProgramKind};

use crate::symbolic::access::INGRESS;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::{Decided, Element, Input};
use crate::symbolic::maps::initial_value;
use crate::symbolic::plausible::{self, Bytes};
use crate::symbolic::source::Source;
use crate::symbolic::state::State;

/// Most elements that fill a map.
const MOST_ELEMENTS: u32 = 1 << 17;

/// Most bytes of packet behind the headroom in the ordinary buffers of bursts.
const CAPACITY: u64 = 3520;

/// Seeds that are tried for random numbers.
const SEEDS: u64 = 20_000;

impl Explorer<'_> {
    /// The input of a path, as far as it has come.
    pub(crate) fn input(&mut self, state: &State) -> Result<Input, GiveUp> {
        Ok(self.decided_input(state, Bytes::Zero)?.0)
    }

    /// The same with bytes that differ from each other and from zero, as far as conditions allow.
    pub(crate) fn varied_input(&mut self, state: &State) -> Option<Input> {
        let is_wanted = self.options.boundaries && self.limit().is_none();
        is_wanted.then(|| self.decided_input(state, Bytes::Different).ok()).flatten().map(|(input, _)| input)
    }

    /// The input of a path, and what its conditions are about.
    pub(crate) fn decided_input(&mut self, state: &State, bytes: Bytes) -> Result<(Input, Decided), GiveUp> {
        let mut conditions = state.path.clone();
        let mut model = Model::clone(&state.assignment.model);
        let mut vars = self.variables(&conditions);
        self.add_variables_of_keys(state, &model, &mut vars);
        self.add_variables_of_route(state, &mut vars);
        // All clocks of an input show one time.
        let clock = vars.iter().find(|(source, _)| matches!(source, Source::Time(..))).map(|(_, term)| *term);
        for &(source, term) in &vars {
            let Some((number, what)) = self.number_in_runs(source, clock)? else { continue };
            self.force(term, number, what, &mut conditions, &mut model)?;
        }
        let keys = self.keys(state);
        let wishes = plausible::wishes(&mut self.terms, &self.sources, self.maps, &vars, (&keys, bytes));
        model = self.solver.prefer(&mut self.terms, &conditions, &model, &wishes);
        let randoms: Vec<_> =
            vars.iter().filter(|(source, _)| matches!(source, Source::Random(_))).copied().collect();
        let seed = match randoms.is_empty() {
            true => None,
            false => Some(self.seed(&randoms, &conditions, &mut model)?),
        };
        let input = self.read(state, (&vars, bytes), &model, seed)?;
        let decided = self.decided(state, &vars, &model);
        Ok((input, decided))
    }

    fn decided(&self, state: &State, vars: &[(Source, Term)], model: &Model) -> Decided {
        let mut decided = Decided::default();
        for &(source, _) in vars {
            match source {
                Source::Packet(offset) => drop(decided.packet.insert(offset as usize)),
                Source::Value { map, element, byte } => {
                    let element = state.maps.get(map).and_then(|map| map.elements.get(element));
                    let Some(element) = element else { continue };
                    let key =
                        element.key.iter().map(|byte| self.terms.evaluate(model, *byte) as u8).collect();
                    decided.values.insert((map, key, byte as usize));
                }
                Source::Time(..) | Source::Context(_) => decided.other = true,
                _ => {}
            }
        }
        decided
    }

    /// What the variables of conditions stand for.
    pub(crate) fn variables(&mut self, conditions: &[Term]) -> Vec<(Source, Term)> {
        let mut vars = BTreeSet::new();
        for &condition in conditions {
            vars.extend(self.terms.support(condition).iter().copied());
        }
        let source = |var| Some((self.sources.of(var)?, self.terms.of_var(var)));
        vars.into_iter().filter_map(source).collect()
    }

    /// Adds what the keys of elements depend on that are there from the start: it is given as well, but for bytes of the packet, which are
    /// known before the elements are made.
    fn add_variables_of_keys(&mut self, state: &State, model: &Model, vars: &mut Vec<(Source, Term)>) {
        for (map, known) in state.maps.iter().enumerate() {
            for (element, asked) in known.elements.iter().enumerate() {
                let is_there = vars.iter().any(|&(source, term)| match source {
                    Source::Present { map: of, element: other } => {
                        (of, other) == (map, element) && self.terms.evaluate(model, term) == 1
                    }
                    Source::Value { map: of, element: other, .. } => (of, other) == (map, element),
                    _ => false,
                });
                if !is_there {
                    continue;
                }
                for (source, term) in self.variables(&asked.key) {
                    if !matches!(source, Source::Packet(_)) && !vars.contains(&(source, term)) {
                        vars.push((source, term));
                    }
                }
            }
        }
    }

    /// What something is in the run of an input that cannot say it, and the words for all else; `None` if the input says it. `clock` is
    /// the time of all clocks.
    fn number_in_runs(
        &mut self,
        source: Source,
        clock: Option<Term>,
    ) -> Result<Option<(Term, &'static str)>, GiveUp> {
        let what = match source {
            Source::Cpu => "a CPU other than the first",
            Source::Node => "a NUMA node other than the first",
            Source::Context(offset) if !self.is_given(offset) => "a number in the context",
            Source::Scratch(_) => "a number in the context",
            Source::Machine(_, name @ "bpf_ringbuf_output") => name,
            Source::TailCallFails(_) => "a tail call that fails",
            Source::ReserveFails(_) => "a ring buffer without room",
            Source::Record { .. } => return Err(GiveUp::Input("what was in a ring buffer before")),
            Source::Address(_) => return Err(GiveUp::Input("a certain address")),
            Source::Machine(_, name) => return Err(GiveUp::Input(name)),
            Source::Present { map, .. } if !can_be_filled(self.maps.get(map)) => "a socket in a map",
            Source::Capacity => {
                return Ok(Some((self.capacity_in_runs(), "a buffer of another size")));
            }
            Source::Time(..) => return Ok(clock.map(|time| (time, "clocks that differ, or go on in a run"))),
            _ => return Ok(None),
        };
        let zero = self.terms.constant(source.width(), 0);
        Ok(Some((zero, what)))
    }

    /// Bytes of packet behind the headroom in the buffer of a burst: a packet that is longer than others gets one for the longest.
    fn capacity_in_runs(&mut self) -> Term {
        let length = self.sources.term(&mut self.terms, Source::Length);
        let length = self.terms.resize(length, 32);
        let [ordinary, longest] =
            [CAPACITY, paceline_frame::MAX_PACKET as u64].map(|bytes| self.terms.constant(32, bytes));
        let is_long = self.terms.ult(ordinary, length);
        self.terms.ite(is_long, longest, ordinary)
    }

    /// Adds the condition that a variable is a number; `what` says what else would be needed.
    fn force(
        &mut self,
        term: Term,
        number: Term,
        what: &'static str,
        conditions: &mut Vec<Term>,
        model: &mut Model,
    ) -> Result<(), GiveUp> {
        let equal = self.terms.eq(term, number);
        match self.solver.extend(&mut self.terms, conditions, model, equal) {
            Answer::Sat(better) => {
                *model = better;
                conditions.push(equal);
                Ok(())
            }
            Answer::Unsat => Err(GiveUp::Input(what)),
            Answer::Unknown(unknown) => Err(GiveUp::Solver(unknown)),
        }
    }

    /// Whether tests can set a number of the context.
    fn is_given(&self, offset: u16) -> bool {
        let kind = self.verified.program().kind;
        let field = kind.context_field(u64::from(offset), 4, false);
        field.is_some_and(|field| match kind {
            ProgramKind::Xdp { .. } => matches!(field.name, INGRESS | "rx_queue_index"),
            _ => field.name == INGRESS,
        })
    }

    /// A seed whose random numbers suit the conditions.
    fn seed(
        &mut self,
        randoms: &[(Source, Term)],
        conditions: &[Term],
        model: &mut Model,
    ) -> Result<u64, GiveUp> {
        let drawn = 1 + randoms.iter().map(|(source, _)| index_of(*source)).max().unwrap_or(0);
        let is_random = |terms: &mut crate::solver::Terms, condition: Term| {
            let support = terms.support(condition);
            support.iter().all(|var| randoms.iter().any(|(_, term)| terms.of_var(*var) == *term))
        };
        let mut own = Vec::new();
        for &condition in conditions {
            if is_random(&mut self.terms, condition) {
                own.push(condition);
            }
        }
        let mut searches = 50;
        for seed in 1..=SEEDS {
            if seed.is_multiple_of(64)
                && let Some(why) = self.limit()
            {
                return Err(why);
            }
            let numbers = (self.options.random)(seed, drawn);
            let mut trial = model.clone();
            for &(source, term) in randoms {
                let var = self.terms.support(term)[0];
                trial.set(var, u64::from(numbers.get(index_of(source)).copied().unwrap_or(0)));
            }
            let holds = |all: &[Term]| all.iter().all(|term| self.terms.evaluate(&trial, *term) == 1);
            if !holds(&own) {
                continue;
            }
            if holds(conditions) {
                *model = trial;
                return Ok(seed);
            }
            searches -= 1;
            if searches == 0 {
                break;
            }
            let mut all = conditions.to_vec();
            for &(_, term) in randoms {
                let number = self.terms.evaluate(&trial, term);
                let number = self.terms.constant(32, number);
                all.push(self.terms.eq(term, number));
            }
            if let Answer::Sat(found) = self.solver.check(&mut self.terms, &all) {
                *model = found;
                return Ok(seed);
            }
        }
        Err(GiveUp::Input("random numbers of a seed that was not found"))
    }

    /// The keys of the elements that a path asked for, which are to be plain too.
    fn keys(&self, state: &State) -> Vec<Term> {
        let elements = state.maps.iter().flat_map(|map| &map.elements);
        elements.flat_map(|element| element.key.iter().copied()).collect()
    }

    fn read(
        &mut self,
        state: &State,
        (vars, bytes): (&[(Source, Term)], Bytes),
        model: &Model,
        seed: Option<u64>,
    ) -> Result<Input, GiveUp> {
        let given: BTreeMap<Source, u64> =
            vars.iter().map(|&(source, term)| (source, self.terms.evaluate(model, term))).collect();
        let number = |source: Source| given.get(&source).copied();
        let length = number(Source::Length).unwrap_or(60) as usize;
        let mut packet: Vec<u8> =
            (0..length).map(|byte| number(Source::Packet(byte as u32)).unwrap_or(0) as u8).collect();
        let is_free = |byte: usize| number(Source::Packet(byte as u32)).is_none();
        plausible::fill(&mut packet, is_free);
        if bytes == Bytes::Different {
            plausible::vary(&mut packet, is_free);
        }
        // Keys of elements may be of bytes that are free.
        let mut model = model.clone();
        for (byte, &value) in (0..).zip(&packet) {
            if let Some(term) = self.sources.known(Source::Packet(byte)) {
                model.set(self.terms.support(term)[0], u64::from(value));
            }
        }
        let kind = self.verified.program().kind;
        let context = |name: &str| {
            let field = kind.context().fields.iter().find(|field| field.name == name);
            field.and_then(|field| number(Source::Context(field.offset))).unwrap_or(0)
        };
        let time = given.iter().find(|(source, _)| matches!(source, Source::Time(..))).map(|(_, time)| *time);
        let mut input = Input {
            packet,
            maps: BTreeMap::new(),
            time_ns: time.unwrap_or(0),
            seed,
            ingress: (context(INGRESS) as u32).max(1),
            queue: context("rx_queue_index") as u16,
            route: self.route_of(state, &given, &model),
            sides: state.sides(),
            calls: state.calls(),
            guess: state.guess.clone(),
        };
        for map in 0..self.maps.len() {
            let elements = self.elements(state, map, &given, &model)?;
            if !elements.is_empty() {
                input.maps.insert(map, elements);
            }
        }
        Ok(input)
    }

    /// The elements that a map must have from the start.
    fn elements(
        &self,
        state: &State,
        map: usize,
        given: &BTreeMap<Source, u64>,
        model: &Model,
    ) -> Result<Vec<Element>, GiveUp> {
        let Some(spec) = self.maps.get(map) else { return Ok(Vec::new()) };
        if spec.is_constant() {
            return Ok(Vec::new());
        }
        let (mut elements, mut asked) = (Vec::new(), BTreeSet::new());
        for (element, known) in state.maps[map].elements.iter().enumerate() {
            let key: Vec<u8> = known.key.iter().map(|byte| self.terms.evaluate(model, *byte) as u8).collect();
            asked.insert(key.clone());
            let is_there = spec.kind.is_array() || given.get(&Source::Present { map, element }) == Some(&1);
            if !is_there {
                continue;
            }
            if spec.kind == MapKind::CpuMap && key.iter().any(|byte| *byte != 0) {
                return Err(GiveUp::Input("a CPU other than the first"));
            }
            let initial = initial_value(spec, &key);
            let mut value = initial.map(<[u8]>::to_vec).unwrap_or_default();
            value.resize(spec.value_size as usize, 0);
            for (byte, slot) in value.iter_mut().enumerate() {
                if let Some(&number) = given.get(&Source::Value { map, element, byte: byte as u32 }) {
                    *slot = number as u8;
                }
            }
            let is_new = match initial {
                Some(initial) => !value.starts_with(initial),
                None => !spec.kind.is_array() || value.iter().any(|byte| *byte != 0),
            };
            if let Some(target) = target(spec) {
                value[..4].copy_from_slice(&target.to_ne_bytes());
            }
            if is_new {
                elements.push(Element { key, value });
            }
        }
        if spec.kind.has_indices() {
            return Ok(elements);
        }
        let wanted = spec.max_entries - state.maps[map].room.most(spec.max_entries);
        match elements.len() as u32 {
            // Only LRU maps are asked for so many.
            present if present > spec.max_entries => Err(GiveUp::Input("more elements than a map has")),
            present if present >= wanted => Ok(elements),
            _ => {
                fill_up(spec, &mut elements, &asked, wanted)?;
                Ok(elements)
            }
        }
    }
}

fn index_of(source: Source) -> usize {
    match source {
        Source::Random(index) => index,
        _ => 0,
    }
}

/// Whether user space alone can give a map elements.
fn can_be_filled(map: Option<&MapSpec>) -> bool {
    map.is_some_and(|map| {
        matches!(map.kind.rules().elements, ElementKind::Bytes | ElementKind::Devices | ElementKind::Cpus)
    })
}

/// The first number of a value that is a target: an interface, or the length of a CPU's queue.
fn target(map: &MapSpec) -> Option<u32> {
    match map.kind {
        MapKind::DevMap | MapKind::DevMapHash => Some(1),
        MapKind::CpuMap => Some(192),
        _ => None,
    }
}

/// Adds elements until a map has as many as are wanted, with keys that were not asked for.
fn fill_up(
    map: &MapSpec,
    elements: &mut Vec<Element>,
    asked: &BTreeSet<Vec<u8>>,
    wanted: u32,
) -> Result<(), GiveUp> {
    let present = elements.len() as u32;
    if map.max_entries > MOST_ELEMENTS || !map.kind.is_keyed() || map.kind.has_prefixes() {
        return Err(GiveUp::Input("a full map"));
    }
    let mut missing = wanted.saturating_sub(present);
    let (key_size, value) = (map.key_size as usize, vec![0; map.value_size as usize]);
    for number in (0..u64::MAX).rev().take((MOST_ELEMENTS * 2) as usize) {
        if missing == 0 {
            return Ok(());
        }
        let mut key = number.to_ne_bytes().to_vec();
        key.resize(key_size.max(8), 0);
        key.truncate(key_size);
        if !asked.contains(&key) {
            elements.push(Element { key, value: value.clone() });
            missing -= 1;
        }
        if key_size < 8 && number.trailing_zeros() as usize >= key_size * 8 {
            break;
        }
    }
    if missing == 0 { Ok(()) } else { Err(GiveUp::Input("a full map")) }
}
