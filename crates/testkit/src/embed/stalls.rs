//! Stalled workers: the backlog of replaced values must be bounded and reported, and freed soon after the stall.

use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::{KeyedSite, Limits, Map, MapKind, MapSpec, Target};
use paceline_epoch::Domain;

use super::finding::Finding;
use super::op::{Op, op};
use super::programs::of;
use super::stall::Stall;
use super::system::thread_time;
use super::world::World;

pub(super) const OPS: &[Op] = &[
    op("stall", 4, stall),
    op("resume", 5, resume),
    op("replace values", 3, replace_values),
    op("replace programs", 3, replace_programs),
    op("evict", 2, evict),
    op("pile up", 1, pile_up),
];

/// Limit of the backlog while a worker stalls.
const BOUND: usize = 1 << 16;

/// Time limit of an insertion; many times as long in unoptimized builds.
const INSERTION: Duration = Duration::from_micros(if cfg!(debug_assertions) { 5_000 } else { 200 });

fn stall(world: &mut World, _: &mut Rng) -> Finding {
    if world.stalls.len() < 2 {
        world.stalls.push(Stall::begin());
    }
    Ok(())
}

/// After the last stall, the next changes free the backlog.
fn resume(world: &mut World, rng: &mut Rng) -> Finding {
    if world.stalls.pop().is_none() || !world.stalls.is_empty() || world.denied {
        return Ok(());
    }
    let domain = Domain::global();
    let before = domain.pending();
    // Each change frees some tens of retired values, so that no change takes long.
    let changes = before / 16 + 100;
    (0..changes).for_each(|_| domain.retire(0u64));
    match domain.pending() {
        after if after > 100 => Err(format!(
            "{before} things waited for a worker; it went on, {changes} changes more: {after} wait"
        )),
        _ => replace_values(world, rng),
    }
}

fn replace_values(world: &mut World, rng: &mut Rng) -> Finding {
    let entries = *rng.choice(&[16, 256]).unwrap_or(&16);
    let kind = *rng.choice(&[MapKind::Hash, MapKind::LruHash]).unwrap_or(&MapKind::Hash);
    let spec = MapSpec::new("values", kind, 8, 32, entries);
    let map = Map::create(&spec, &Limits { cpus: 1, memory: 1 << 26 })
        .map_err(|error| paceline::with_causes(&error))?;
    world.know(&map);
    for n in 0..4 * u64::from(entries) {
        match map.insert(&(n % u64::from(entries)).to_ne_bytes(), &[n as u8; 32]) {
            Err(_) if world.may_refuse() => break,
            Err(error) => {
                return Err(format!("{kind:?} of {entries}, no worker stalls, change {n}: {error:?}"));
            }
            Ok(()) => {}
        }
    }
    (0..u64::from(entries)).try_for_each(|key| match map.delete(&key.to_ne_bytes()) {
        Ok(()) | Err(paceline::Errno::ENOENT) => Ok(()),
        Err(error) => Err(format!("{kind:?} remove: {error:?}")),
    })?;
    world.others.push(Box::new(map));
    Ok(())
}

fn replace_programs(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "steer")?;
    let program = world.loaded[index].program("pass")?.clone().into_program();
    let site = KeyedSite::by_key();
    for n in 0..rng.u64(1..500) {
        match site.set(n % 3, Some(&Target::from(&program))) {
            Err(_) if world.may_refuse() => break,
            Err(error) => return Err(format!("change {n} of a call site: {error}")),
            Ok(()) => {}
        }
    }
    world.others.push(Box::new(site));
    Ok(())
}

/// Insertions into a small table that evicts; each must be short, in processor time of its thread.
fn evict(world: &mut World, rng: &mut Rng) -> Finding {
    let entries = *rng.choice(&[16, 64]).unwrap_or(&16);
    let spec = MapSpec::new("evicting", MapKind::LruHash, 8, 8, entries);
    let map = Map::create(&spec, &Limits { cpus: 2, memory: 1 << 26 })
        .map_err(|error| paceline::with_causes(&error))?;
    world.know(&map);
    let stall = rng.bool().then(Stall::begin);
    let wall = Instant::now();
    let (mut count, mut slow) = (0u64, 0);
    while count < 100_000 && wall.elapsed() < Duration::from_secs(2) {
        count += 1;
        let start = thread_time();
        let inserted = map.for_programs().update(&count.to_ne_bytes(), &[1; 8], 0, 0);
        slow += u32::from(thread_time() - start > INSERTION);
        if inserted.is_err() && stall.is_none() && !world.may_refuse() {
            return Err(format!("insertion {count}: refused while no worker stalls"));
        }
    }
    // A few are interrupted.
    if slow > 10 {
        return Err(format!(
            "of {count} insertions into {entries} entries {slow} take more than {INSERTION:?}"
        ));
    }
    Ok(())
}

/// Replaces programs of a program array while a worker stalls.
fn pile_up(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "tables")?;
    let loaded = &world.loaded[index];
    let (array, leaf) = (loaded.map("leaves")?, loaded.program("leaf")?);
    let _stall = Stall::begin();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        for at in 0..4 {
            if leaf.program().install(array, at).is_err() {
                return Ok(());
            }
        }
        let waiting = Domain::global().pending();
        if waiting > BOUND {
            return Err(format!("{waiting} things wait for a worker that stalls, and no change is refused"));
        }
    }
    Ok(())
}
