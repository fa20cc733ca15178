//! Objects with changed maps, programs bound to maps of other collections, and their runs.

use std::sync::Arc;

use fastrand::Rng;
use paceline::chain::Graph;
use paceline::{
    Burst, BurstFault, Chain, Change, FaultKind, Host, LiveChain, LoadOptions, Map, MapFlags, MapSpec,
    Object, Order, Program, Target, Verdict,
};

use super::finding::{Finding, refused};
use super::loaded::Loaded;
use super::op::{Op, op};
use super::world::{Run, Runner, World, burst, limits, site, total};

pub(super) const OPS: &[Op] = &[
    op("load", 3, |world, rng| load(world, rng).map(drop)),
    op("load another", 3, load_another),
    op("rebind", 6, rebind),
    op("bind", 3, bind),
    op("unverified", 1, unverified),
    op("replace inner", 3, replace_inner),
    op("install", 2, install),
    op("scribble", 3, scribble),
    op("change chain", 2, change_chain),
    op("run", 14, run),
    op("engines", 2, engines),
    op("drop loaded", 1, |world, rng| {
        let index = some(world, rng)?;
        drop(world.loaded.remove(index));
        Ok(())
    }),
    op("drop runner", 1, |world, rng| {
        if !world.runs.is_empty() {
            let index = rng.usize(..world.runs.len());
            drop(world.runs.remove(index));
        }
        Ok(())
    }),
    op("drop host", 1, |world, rng| {
        if !world.hosts.is_empty() {
            let index = rng.usize(..world.hosts.len());
            drop(world.hosts.remove(index));
        }
        Ok(())
    }),
];

macro_rules! sources {
    ($($name:literal: $path:literal,)*) => {
        [$(($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)).as_slice()),)*]
    };
}

/// The objects, those written for this campaign first.
const SOURCES: [(&str, &[u8]); 11] = sources! {
    "timers": "fixtures/timers.o",
    "tables": "fixtures/tables.o",
    "rings": "fixtures/rings.o",
    "steer": "fixtures/steer.o",
    "counter": "../../examples/counter.o",
    "firewall": "../../examples/firewall.o",
    "balancer": "../../examples/balancer.o",
    "sampler": "../../examples/sampler.o",
    "tail_calls": "../cli/tests/fixtures/tail_calls.o",
    "events": "../cli/tests/fixtures/events.o",
    "expire": "../cli/tests/fixtures/expire.o",
};

pub(super) fn object(source: &str) -> Result<Object, String> {
    let (_, bytes) = SOURCES.iter().find(|(name, _)| *name == source).ok_or("no such source")?;
    Object::parse(bytes).map_err(|error| format!("{source}: {error}"))
}

/// Changes the spec of a map, and those of similar ones.
fn change_spec(spec: &mut MapSpec, rng: &mut Rng) {
    match rng.u8(0..8) {
        0 | 1 => (spec.value_size, spec.value_type) = (8, 0),
        2 => (spec.value_size, spec.value_type) = (spec.value_size.saturating_mul(2), 0),
        3 => spec.special = Box::default(),
        4 => spec.max_entries = *rng.choice(&[0, 1, 2, 65536]).unwrap_or(&1),
        5 => spec.flags = MapFlags(spec.flags.0 ^ 1 << rng.u32(0..13)),
        6 => spec.frozen = !spec.frozen,
        _ => spec.key_size = rng.u32(0..9),
    }
}

/// Changes the spec of one map of an object; a template of inner maps is changed with its inner maps.
fn change_object(object: &mut Object, rng: &mut Rng) {
    let maps = &mut object.specs_mut().maps;
    if maps.is_empty() {
        return;
    }
    // Half of the time a template of inner maps, because there are few.
    let templates: Vec<usize> = (0..maps.len()).filter(|&map| maps[map].inner.is_some()).collect();
    let any = rng.usize(..maps.len());
    let chosen = rng.choice(templates).filter(|_| rng.bool()).unwrap_or(any);
    let seed = rng.u64(..);
    let Some(template) = maps[chosen].inner.as_deref().cloned() else {
        return change_spec(&mut maps[chosen], rng);
    };
    for map in maps {
        if let Some(inner) = &mut map.inner {
            change_spec(inner, &mut Rng::with_seed(seed));
        } else if (map.kind, map.value_size) == (template.kind, template.value_size) {
            change_spec(map, &mut Rng::with_seed(seed));
        }
    }
}

/// Loads an object; `None` if the changed object is refused.
pub(super) fn load_object(
    world: &mut World,
    rng: &mut Rng,
    source: &'static str,
    changed: bool,
) -> Result<Option<usize>, String> {
    let mut object = object(source)?;
    if changed {
        change_object(&mut object, rng);
    }
    let options = LoadOptions::default().engine(world.engine(rng)).limits(limits(rng));
    let collection = match object.load(&options) {
        Ok(collection) => collection,
        Err(_) if changed || world.may_refuse() => return Ok(None),
        Err(error) => return Err(format!("{source}: {error}")),
    };
    collection.maps().iter().for_each(|map| world.know(map));
    let names: Vec<String> = object.programs().iter().map(|program| program.name.clone()).collect();
    let load = |name: String| Some((name.clone(), collection.program(Some(&name)).ok()?));
    let programs = names.into_iter().filter_map(load).collect();
    world.loaded.push(Loaded { source, collection, programs });
    Ok(Some(world.loaded.len() - 1))
}

/// Loads an unchanged object.
pub(super) fn load(world: &mut World, rng: &mut Rng) -> Result<usize, String> {
    let chosen = if rng.bool() { rng.usize(..4) } else { rng.usize(..SOURCES.len()) };
    let (source, _) = SOURCES[chosen];
    load_object(world, rng, source, false)?.ok_or_else(|| refused("an object"))
}

fn load_another(world: &mut World, rng: &mut Rng) -> Finding {
    let index = some(world, rng)?;
    let source = world.loaded[index].source;
    load_object(world, rng, source, true).map(drop)
}

/// A random loaded collection.
pub(super) fn some(world: &mut World, rng: &mut Rng) -> Result<usize, String> {
    if world.loaded.is_empty() { load(world, rng) } else { Ok(rng.usize(..world.loaded.len())) }
}

/// A collection of a source.
pub(super) fn of(world: &mut World, rng: &mut Rng, source: &'static str) -> Result<usize, String> {
    let complete = |loaded: &Loaded| loaded.source == source && !loaded.programs.is_empty();
    match world.loaded.iter().position(complete) {
        Some(index) => Ok(index),
        None => load_object(world, rng, source, false)?.ok_or_else(|| refused("an object")),
    }
}

/// Counter of the runs of a program, if it has one.
fn counter(source: &str, program: &str, maps: &[Arc<Map>]) -> Option<Arc<Map>> {
    let name = match (source, program) {
        ("tables", "tables") => "counts",
        ("steer", _) => "steered",
        _ => return None,
    };
    let counts = maps.iter().find(|map| map.spec().name == name)?;
    (counts.spec().value_size == 8).then(|| Arc::clone(counts))
}

fn chosen(world: &mut World, rng: &mut Rng) -> Result<Option<(usize, usize)>, String> {
    let index = some(world, rng)?;
    let programs = world.loaded[index].programs.len();
    Ok((programs > 0).then(|| (index, rng.usize(..programs))))
}

/// Creates a runner of any kind for programs.
fn bind(world: &mut World, rng: &mut Rng) -> Finding {
    let Some((index, which)) = chosen(world, rng)? else { return Ok(()) };
    let loaded = &world.loaded[index];
    let (name, program) = &loaded.programs[which];
    let counter = counter(loaded.source, name, program.program().maps());
    let (runner, step) = match rng.u8(0..4) {
        0 => (Runner::Program(program.program().clone()), 1),
        1 => (site(&Target::from(program.program()), rng.u32(1..4))?, 1),
        2 => {
            let graph = Graph::sequence(1).map_err(|error| paceline::with_causes(&error))?;
            let parts = [(&**program.verified(), program.program().maps().to_vec())];
            match Chain::load(&parts, graph, loaded.collection.engine()) {
                Ok(chain) => (Runner::Chain(chain), 1),
                Err(error) => return Err(format!("a chain of its own maps: {error}")),
            }
        }
        _ => match loaded.collection.member("member", Some(name)) {
            Ok(member) => match LiveChain::new(vec![member], Order::Given) {
                Ok(chain) => (Runner::Live(chain), 1),
                Err(_) if world.may_refuse() => return Ok(()),
                Err(error) => return Err(format!("a chain of one: {error}")),
            },
            Err(error) => return Err(format!("a member that was loaded: {error}")),
        },
    };
    world.runs.push(Run { runner, verified: !world.calls_unproven, counter, step });
    Ok(())
}

/// Binds a verified program to its maps and those of other collections of the same object, which may differ.
fn rebind(world: &mut World, rng: &mut Rng) -> Finding {
    let Some((index, which)) = chosen(world, rng)? else { return Ok(()) };
    let source = world.loaded[index].source;
    if !world.loaded.iter().enumerate().any(|(i, other)| i != index && other.source == source) {
        load_object(world, rng, source, true)?;
    }
    let loaded = &world.loaded[index];
    let others: Vec<&Loaded> = world.loaded.iter().filter(|other| other.source == source).collect();
    let choose = |rng: &mut Rng, i: usize, own: &Arc<Map>| {
        let other = rng.choice(&others).and_then(|other| other.collection.maps().get(i));
        // Mostly its own maps: one that differs suffices.
        Arc::clone(other.filter(|_| rng.u8(0..3) == 0).unwrap_or(own))
    };
    let (name, program) = &loaded.programs[which];
    let mut maps: Vec<Arc<Map>> =
        program.program().maps().iter().enumerate().map(|(i, own)| choose(rng, i, own)).collect();
    // Now and then one that user space made, with what the proof knows of its values left out.
    if rng.u8(0..4) == 0 && !maps.is_empty() {
        let i = rng.usize(..maps.len());
        let spec = MapSpec { special: Box::default(), ..maps[i].spec().clone() };
        if let Ok(map) = Map::create(&spec, &limits(rng)) {
            world.ids.push(map.id());
            maps[i] = map;
        }
    }
    let engine = loaded.collection.engine();
    let counter = counter(source, name, &maps);
    let verified = program.verified();
    let runner = if rng.bool() {
        let parts = [(&**verified, maps.clone())];
        Graph::sequence(1).ok().and_then(|graph| Chain::load(&parts, graph, engine).ok()).map(Runner::Chain)
    } else {
        Program::load(verified, maps.clone(), engine).ok().map(Runner::Program)
    };
    let Some(runner) = runner else { return Ok(()) };
    // User space writes the maps that it may write; programs of other maps must not read these bytes as pointers.
    maps.iter().for_each(|map| fill_map(map, rng));
    world.runs.push(Run { runner, verified: !world.calls_unproven, counter, step: 1 });
    let last = world.runs.len() - 1;
    for _ in 0..3 {
        run_one(world, rng, last)?;
    }
    Ok(())
}

/// An unverified program, with a small or large instruction budget.
fn unverified(world: &mut World, rng: &mut Rng) -> Finding {
    let Some((index, which)) = chosen(world, rng)? else { return Ok(()) };
    let (name, _) = &world.loaded[index].programs[which];
    let program = world.loaded[index]
        .collection
        .program_unverified(Some(name))
        .map_err(|error| paceline::with_causes(&error))?;
    let program = program.with_budget(rng.u64(0..400));
    let runner =
        if rng.bool() { Runner::Program(program) } else { site(&Target::from(&program), rng.u32(1..4))? };
    world.runs.push(Run { runner, verified: false, counter: None, step: 0 });
    Ok(())
}

/// Sets an inner map in a map of maps, whether it matches the template or not.
pub(super) fn replace_inner(world: &mut World, rng: &mut Rng) -> Finding {
    let index = if rng.bool() { of(world, rng, "tables")? } else { of(world, rng, "timers")? };
    let outer = Arc::clone(world.loaded[index].map("outer")?);
    let Some(mut spec) = outer.spec().inner.as_deref().cloned() else { return Ok(()) };
    let same = rng.bool();
    if !same {
        change_spec(&mut spec, rng);
    }
    let Ok(inner) = Map::create(&spec, &limits(rng)) else { return Ok(()) };
    world.know(&inner);
    let taken = outer.insert(&rng.u32(0..2).to_ne_bytes(), &inner.id().to_ne_bytes());
    match taken {
        Err(error) if same && !outer.is_frozen() && !world.may_refuse() => {
            Err(format!("an inner map is refused: {error:?}"))
        }
        _ => Ok(()),
    }
}

/// Tail calls, of verified and unverified programs.
fn install(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "tables")?;
    let loaded = &world.loaded[index];
    let Ok(leaf) = loaded.program("leaf") else { return Ok(()) };
    let array = loaded.map("leaves")?;
    let at = rng.u32(0..5);
    match rng.u8(0..4) {
        0 => {
            let _none = array.delete(&at.to_ne_bytes());
        }
        1 => {
            let program = loaded
                .collection
                .program_unverified(Some("leaf"))
                .map_err(|error| paceline::with_causes(&error))?;
            let _refused = program.with_budget(3).install(array, at);
            // Callers of this program may fault from now on.
            world.calls_unproven = true;
            world.runs.iter_mut().for_each(|run| run.verified = false);
        }
        _ => {
            let _refused = leaf.program().install(array, at);
        }
    }
    Ok(())
}

/// Fills a map with bytes that are not addresses or indices.
fn fill_map(map: &Map, rng: &mut Rng) {
    // Values that detect torn reads, and counters, are kept.
    if ["hash", "lru", "routes", "counts", "steered", "shared", "submitted"]
        .contains(&map.spec().name.as_str())
    {
        return;
    }
    let value = vec![rng.u8(1..); map.user_value_size()];
    for index in 0..map.spec().max_entries.min(4) {
        let mut key = index.to_ne_bytes().to_vec();
        key.resize(map.spec().key_size as usize, 0);
        let _refused = map.insert(&key, &value);
    }
}

fn scribble(world: &mut World, rng: &mut Rng) -> Finding {
    let index = some(world, rng)?;
    world.loaded[index].collection.maps().iter().for_each(|map| fill_map(map, rng));
    Ok(())
}

fn change_chain(world: &mut World, rng: &mut Rng) -> Finding {
    let Some((index, which)) = chosen(world, rng)? else { return Ok(()) };
    let name = world.loaded[index].programs[which].0.clone();
    let may_refuse = world.may_refuse();
    let loaded = &world.loaded[index];
    let Some(run) = world.runs.iter_mut().find(|run| matches!(run.runner, Runner::Live(_))) else {
        return Ok(());
    };
    let Runner::Live(chain) = &run.runner else { return Ok(()) };
    let member = loaded.collection.member("member", Some(&name)).map_err(refused)?;
    let changes = vec![Change::All { members: vec![member], order: Order::Given }];
    match chain.change(None, changes) {
        Ok(_) => run.counter = counter(loaded.source, &name, loaded.collection.maps()),
        Err(_) if may_refuse => {}
        Err(error) => return Err(format!("a change of a chain: {error}")),
    }
    Ok(())
}

impl Runner {
    /// Runs a burst.
    fn run(&self, burst: &mut Burst, host: &mut Host, counted: bool) -> Result<(), BurstFault> {
        match self {
            Self::Program(program) => program.run_burst(burst, host),
            Self::Chain(chain) => chain.run_burst(burst, host),
            Self::Site(pipeline, key) => pipeline.site().caller().run_burst(*key, burst, host),
            Self::Live(chain) => {
                let worker = if counted { chain.worker().counted().ok() } else { None };
                // Memory for code that counts may be refused.
                let mut worker = worker.unwrap_or_else(|| chain.worker());
                worker.run_burst(burst, host)
            }
        }
    }
}

/// Runs a burst on a random host; counters must increase accordingly.
fn run_one(world: &mut World, rng: &mut Rng, index: usize) -> Finding {
    let host = world.host(rng);
    let (run, host) = (&world.runs[index], &mut world.hosts[host]);
    let mut burst = burst(rng);
    let counted = |run: &Run| run.counter.as_ref().map(|map| total(map, 0));
    let before = counted(run);
    let result = run.runner.run(&mut burst, host, rng.bool());
    if let Err(BurstFault { index, .. }) = &result
        && let Some(left) = burst.iter().skip(*index).find(|frame| frame.verdict() != Verdict::Aborted)
    {
        return Err(format!("a packet from a fault on has the verdict {}", left.verdict()));
    }
    match result {
        Ok(()) => {
            let expected = before.map(|before| before.wrapping_add(run.step * burst.len() as u64));
            let after = counted(run);
            // The plain interpreter finds no value for a CPU beyond the map's.
            let has_cpu = |map: &Arc<Map>| host.cpu() < map.user_value_size() / 8;
            if run.verified && run.counter.as_ref().is_some_and(has_cpu) && expected != after {
                return Err(format!("{} packets count from {before:?} to {after:?}", burst.len()));
            }
            Ok(())
        }
        // A CPU beyond the maps', or that of another host.
        Err(BurstFault { fault, .. }) if matches!(fault.kind, FaultKind::CpuInUse(_)) => Ok(()),
        Err(BurstFault { fault, .. }) if matches!(fault.kind, FaultKind::NoCpu(_)) && host.cpu() > 0 => {
            Ok(())
        }
        Err(_) if !run.verified => Ok(()),
        Err(error) => Err(format!("a proven program faults: {}", error.fault)),
    }
}

fn run(world: &mut World, rng: &mut Rng) -> Finding {
    if world.runs.is_empty() {
        bind(world, rng)?;
    }
    if world.runs.is_empty() {
        return Ok(());
    }
    let index = rng.usize(..world.runs.len());
    for _ in 0..rng.u32(1..4) {
        run_one(world, rng, index)?;
    }
    Ok(())
}

/// Equal bursts on all engines must give equal packets, verdicts and maps.
fn engines(world: &mut World, rng: &mut Rng) -> Finding {
    let (source, _) = *rng.choice(&SOURCES[1..8]).unwrap_or(&SOURCES[1]);
    let (seed, cpus) = (rng.u64(..), limits(rng));
    let mut first: Option<(paceline::Engine, Vec<u8>)> = None;
    for engine in world.engines.clone() {
        let rng = &mut Rng::with_seed(seed);
        let object = object(source)?;
        let options = LoadOptions::default().engine(engine).limits(cpus);
        let collection = object.load(&options).map_err(refused)?;
        let mut host = Host::new(0);
        host.seed(seed);
        host.set_time(paceline::TimeSource::Packets);
        let mut seen = Vec::new();
        for spec in object.programs() {
            let Ok(program) = collection.program(Some(&spec.name)) else { continue };
            for _ in 0..4 {
                let mut burst = burst(rng);
                host.arrive(&burst);
                program
                    .run_burst(&mut burst, &mut host)
                    .map_err(|fault| format!("{engine}: {}", fault.fault))?;
                for frame in burst.iter() {
                    seen.push(frame.verdict() as u8);
                    seen.extend_from_slice(frame.packet());
                }
            }
        }
        // Values of maps of maps are ids of maps.
        for map in collection.maps().iter().filter(|map| map.spec().inner.is_none()) {
            let mut keys: Vec<_> = map.keys().into_iter().flatten().collect();
            keys.sort_unstable();
            keys.iter().filter_map(|key| map.lookup(key).ok()).for_each(|value| seen.extend(value));
        }
        match &first {
            Some((other, expected)) if *expected != seen => {
                return Err(format!("{source} gives something else on {engine} than on {other}"));
            }
            Some(_) => {}
            None => first = Some((engine, seen)),
        }
    }
    Ok(())
}
