//! Random runs: changed inputs, in hosts with other clocks and other packets before, with maps that are almost full and programs in arrays.

use std::collections::BTreeSet;

use fastrand::Rng;
use paceline::generate::{self, Element, Input, Ran, Route, RouteOutcome, Side};
use paceline::isa::assemble;
use paceline::{Collection, Engine, LoadOptions, Object, Program, ProgramSpec, TimeSource};
use paceline_spec::context::SkBuff;
use paceline_spec::{MapKind, MapSpec};

use crate::Contents;
use crate::engine::map_contents;

/// Longest packet.
const LONGEST: usize = 1514;

/// Maps of more elements are not filled.
const MOST_ELEMENTS: u32 = 1024;

/// Most packets that run before.
const MOST_BEFORE: usize = 64;

/// CPUs, of which the program runs on one.
const CPUS: usize = 2;

/// The program, and another one for program arrays.
pub(super) struct Bench<'a> {
    object: &'a Object,
    program: &'a ProgramSpec,
    other: Option<Program>,
}

/// A random run.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) input: Input,
    /// Packets that run before, with the same maps.
    before: Vec<Input>,
    clock: TimeSource,
    cpu: usize,
    /// What packets of classifiers arrive with.
    skb: Option<SkBuff>,
    /// How many elements fit into each map, and the seed of the others.
    room: Option<(u32, u64)>,
    /// Entries of program arrays: whether they have a program.
    programs: Vec<(String, u32, bool)>,
}

/// What the runs of a trial did.
pub(super) struct Done {
    /// Number of packets that ran.
    pub(super) packets: u64,
    /// The sides that they took.
    pub(super) sides: BTreeSet<Side>,
    /// The run of the input itself.
    pub(super) last: Ran,
    /// Indices of the maps that it changed.
    pub(super) changed: BTreeSet<usize>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(object: &'a Object, program: &'a ProgramSpec) -> Option<Self> {
        let code = assemble("r0 = 5\nexit", &()).ok()?;
        let other = ProgramSpec::new("other", program.kind, code.encode().ok()?);
        let other = Object::of_program(other).load(&LoadOptions::default().engine(Engine::Plain)).ok();
        let other = other.and_then(|collection| collection.program_unverified(None).ok());
        Some(Self { object, program, other })
    }

    pub(super) fn trial(&self, known: &[Input], rng: &mut Rng) -> Trial {
        let arrays = self.object.maps().iter().filter(|map| map.kind == MapKind::ProgArray);
        let entries =
            arrays.flat_map(|map| (0..map.max_entries.min(8)).map(|index| (map.name.clone(), index)));
        let mut programs = Vec::new();
        for (map, index) in entries {
            if rng.bool() {
                programs.push((map, index, rng.bool()));
            }
        }
        Trial {
            input: self.changed(known, rng),
            before: self.before(known, rng),
            clock: if rng.bool() { TimeSource::System } else { TimeSource::Packets },
            cpu: rng.usize(..CPUS),
            skb: rng.bool().then(|| arriving(rng)),
            room: rng.bool().then(|| (rng.u32(..3), rng.u64(..))),
            programs,
        }
    }

    /// What a run does; none if it cannot be made. Maps are compared if that is asked for.
    pub(super) fn run(&self, trial: &Trial, compares_maps: bool) -> Option<Done> {
        let options = LoadOptions::default().engine(Engine::Plain).cpus(CPUS);
        let collection = self.object.load(&options).ok()?;
        let program = collection.program_unverified(Some(&self.program.name)).ok()?;
        for input in std::iter::once(&trial.input).chain(&trial.before) {
            // A map that is full keeps what it has.
            let _ = generate::fill(self.object, &collection, input);
        }
        if let Some((room, seed)) = trial.room {
            self.fill_up(&collection, room, &mut Rng::with_seed(seed));
        }
        for (map, index, is_there) in &trial.programs {
            // Arrays that the program does not use may admit none.
            let _ = match (&self.other, is_there) {
                (Some(other), true) => collection.install(map, *index, other).is_ok(),
                _ => collection.uninstall(map, *index).is_ok(),
            };
        }
        let mut host = generate::host(&trial.input);
        host.set_time(trial.clock);
        host.set_cpu(trial.cpu);
        host.set_arriving(trial.skb.unwrap_or_default());
        let mut sides = BTreeSet::new();
        for before in &trial.before {
            sides.extend(generate::run_in(&program, &mut host, before).ok()?.sides);
        }
        let contents = || match compares_maps {
            true => self.contents(&collection, trial.cpu),
            false => Vec::new(),
        };
        let before = contents();
        let last = generate::run_in(&program, &mut host, &trial.input).ok()?;
        sides.extend(&last.sides);
        let now = contents();
        let changed = (0..now.len()).filter(|map| before[*map] != now[*map]).collect();
        Some(Done { packets: trial.before.len() as u64 + 1, sides, last, changed })
    }

    /// What maps hold, those that are compared.
    fn contents(&self, collection: &Collection, cpu: usize) -> Vec<Option<Contents>> {
        let map = |spec: &MapSpec| map_contents(collection.map(&spec.name)?, cpu);
        self.object.maps().iter().map(|spec| is_watched(spec).then(|| map(spec)).flatten()).collect()
    }

    /// Adds random elements to hash maps, until so many fit still.
    fn fill_up(&self, collection: &Collection, room: u32, rng: &mut Rng) {
        for spec in self.object.maps().iter().filter(|spec| is_hash(spec) && !spec.frozen) {
            let Some(map) = collection.map(&spec.name) else { continue };
            let present = map.keys().map_or(0, Iterator::count) as u32;
            for _ in present..spec.max_entries.saturating_sub(room) {
                let key: Vec<u8> = (0..spec.key_size).map(|_| rng.u8(..)).collect();
                let _ = map.insert(&key, &vec![0; map.user_value_size()]);
            }
        }
    }

    /// A random input: one that is known, with some of its bytes and numbers changed, and elements that others have.
    fn changed(&self, known: &[Input], rng: &mut Rng) -> Input {
        let like = rng.choice(known);
        let mut input = packet(like, rng);
        input.maps = like.map(|like| like.maps.clone()).unwrap_or_default();
        if let Some(other) = rng.choice(known)
            && rng.bool()
        {
            for (map, elements) in &other.maps {
                input.maps.entry(*map).or_insert_with(|| elements.clone());
            }
        }
        self.change_elements(&mut input, rng);
        input
    }

    /// Inputs that run before: the first one has elements, which take most of the time.
    fn before(&self, known: &[Input], rng: &mut Rng) -> Vec<Input> {
        let count = if rng.bool() { rng.usize(1..=MOST_BEFORE) } else { 0 };
        let input = |place| match place {
            0 => self.changed(known, rng),
            _ => packet(rng.choice(known), rng),
        };
        (0..count).map(input).collect()
    }

    fn change_elements(&self, input: &mut Input, rng: &mut Rng) {
        for (index, spec) in self.object.maps().iter().enumerate() {
            let is_open = (spec.kind.is_array() || is_hash(spec)) && !spec.frozen;
            if is_open && spec.value_size <= 256 && rng.u8(..4) == 0 {
                let key = match spec.kind.is_array() {
                    true => rng.u32(..spec.max_entries).to_ne_bytes().to_vec(),
                    false => (0..spec.key_size).map(|_| rng.u8(..2)).collect(),
                };
                let elements = input.maps.entry(index).or_default();
                if elements.len() < spec.max_entries as usize && elements.iter().all(|other| other.key != key)
                {
                    elements.push(Element { key, value: vec![0; spec.value_size as usize] });
                }
            }
        }
        for elements in input.maps.values_mut() {
            for Element { value, .. } in elements.iter_mut().take(16) {
                if !value.is_empty() && rng.bool() {
                    let at = rng.usize(..value.len());
                    value[at] = rng.u8(..);
                }
            }
        }
        let holds_bytes = |map: usize| self.object.maps().get(map).is_some_and(|map| map.kind.holds_bytes());
        input.maps.retain(|map, _| holds_bytes(*map));
    }
}

/// A packet like that of an input, with some bytes changed, and random numbers beside it.
fn packet(like: Option<&Input>, rng: &mut Rng) -> Input {
    let mut packet = like.map_or_else(|| vec![0; 60], |like| like.packet.clone());
    if rng.u8(..4) == 0 {
        packet.resize(rng.usize(1..=LONGEST), 0);
    }
    for _ in 0..rng.usize(..6) {
        let at = rng.usize(..packet.len());
        packet[at] = if rng.bool() { rng.u8(..) } else { packet[at] ^ 1 << rng.u8(..8) };
    }
    Input {
        packet,
        route: like.and_then(|like| like.route).map(|route| other_route(route, rng)),
        time_ns: rng.u64(..) >> rng.u32(..64),
        seed: Some(rng.u64(..)),
        ingress: rng.u32(..4),
        queue: rng.u16(..4),
        ..Input::default()
    }
}

/// An answer of the network that may differ from that of an input.
fn other_route(mut route: Route, rng: &mut Rng) -> Route {
    let number = |rng: &mut Rng| rng.u32(..) >> rng.u32(..32);
    if rng.bool() {
        route.outcome = rng.choice(RouteOutcome::ALL).unwrap_or(route.outcome);
    }
    if rng.bool() {
        (route.interface, route.mtu, route.metric) = (number(rng).max(1), number(rng), number(rng));
    }
    if rng.bool() {
        let v4 = rng.u32(..).to_be_bytes().into();
        let v6 = rng.u128(..).to_be_bytes().into();
        route.gateway = Some(if route.destination.is_ipv4() && rng.bool() { v4 } else { v6 });
    }
    if rng.bool() {
        (route.source_mac, route.destination_mac) = ([rng.u8(..); 6], [rng.u8(..); 6]);
    }
    route
}

fn arriving(rng: &mut Rng) -> SkBuff {
    let mut number = || if rng.bool() { rng.u32(..) } else { rng.u32(..3) };
    let mut skb = SkBuff::default();
    (skb.mark, skb.priority, skb.hash) = (number(), number(), number());
    skb.cb = std::array::from_fn(|_| number());
    skb.tstamp = u64::from(number()) << 32 | u64::from(number());
    (skb.tc_index, skb.tc_classid, skb.queue_mapping) = (number() as u16, number() as u16, number() as u16);
    skb
}

/// Whether what a map holds is compared.
pub(super) fn is_watched(map: &MapSpec) -> bool {
    (map.kind.is_array() || is_hash(map)) && map.max_entries <= MOST_ELEMENTS
}

fn is_hash(map: &MapSpec) -> bool {
    map.kind.is_keyed() && !map.kind.has_prefixes() && map.max_entries <= MOST_ELEMENTS
}

#[cfg(test)]
mod tests {
    use paceline::ProgramKind;
    use paceline_spec::XdpAttach;

    use super::*;

    const UPDATE: &str = "
        *(u32 *)(r10 - 4) = KEY
        *(u64 *)(r10 - 16) = 0
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 0
        r1 = map[0] ll
        call 2
        ";

    fn update(key: u32) -> String {
        UPDATE.replace("KEY", &key.to_string())
    }

    /// Whether some of many random runs takes the last jump of a program.
    fn is_taken(text: &str, map: MapSpec) -> bool {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let text =
            if text.contains("out:") { text.to_owned() } else { format!("{text}\nout:\nr0 = 1\nexit") };
        let code = assemble(&text, &()).unwrap();
        let jumps = code.iter().filter(|(_, insn)| matches!(insn, paceline::isa::Insn::JumpIf { .. }));
        let side = Side { slot: jumps.map(|(slot, _)| slot).last().unwrap(), taken: true };
        let mut object = Object::of_program(ProgramSpec::new("test", kind, code.encode().unwrap()));
        object.specs_mut().maps = vec![map];
        let program = &object.programs()[0];
        let (bench, mut rng) = (Bench::new(&object, program).unwrap(), Rng::with_seed(1));
        let trials: Vec<_> = (0..200).map(|_| bench.trial(&[], &mut rng)).collect();
        trials.iter().any(|trial| bench.run(trial, false).is_some_and(|done| done.sides.contains(&side)))
    }

    #[test]
    fn maps_fill_up_in_a_run() {
        let text = format!("{}\nif r0 != 0 goto out\n{}\nif r0 != 0 goto out", update(70), update(71));
        assert!(is_taken(&text, MapSpec::new("hash", MapKind::Hash, 4, 8, 8)));
    }

    #[test]
    fn elements_are_removed_to_make_room() {
        let look = "*(u32 *)(r10 - 4) = 70\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto out";
        let text = format!("{}\n{}\n{look}", update(70), update(71));
        assert!(is_taken(&text, MapSpec::new("lru", MapKind::LruHash, 4, 8, 1)));
    }

    #[test]
    fn tail_calls_return_to_functions() {
        let text = "
            call other
            if r0 == 5 goto out
            r0 = 0
        out:
            exit
        other:
            r2 = map[0] ll
            r3 = 1
            call 12
            r0 = 1
            exit";
        assert!(is_taken(text, MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4)));
    }

    #[test]
    fn clocks_go_on_in_a_run() {
        let text = "call 5\nr7 = r0\ncall 5\nif r0 != r7 goto out";
        assert!(is_taken(text, MapSpec::new("hash", MapKind::Hash, 4, 8, 8)));
    }

    #[test]
    fn there_are_several_processors() {
        let text = "call 8\nif r0 == 1 goto out";
        assert!(is_taken(text, MapSpec::new("hash", MapKind::Hash, 4, 8, 8)));
    }
}
