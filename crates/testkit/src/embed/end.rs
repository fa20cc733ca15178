//! Invariants after everything is dropped, and of memory use over cycles.

use fastrand::Rng;
use paceline::{Limits, Map, MapFlags, MapKind, MapSpec};
use paceline_epoch::Domain;

use super::finding::Finding;
use super::system::heap;
use super::world::World;

/// Maximum growth in bytes, average per cycle and in total, for rounding by allocators and tables.
const KEPT: (usize, usize) = (24, 1024);

/// Whether the heap grows with the cycles, which are 16 times as many in the end. A table that doubles once grows in one
/// measurement only; memory leaked by each cycle grows in all of them, because each measurement has as many cycles as all
/// before.
pub(super) fn growth(what: &str, cycles: usize, mut cycle: impl FnMut()) -> Finding {
    let mut measure = |cycles: usize| {
        (0..cycles).for_each(|_| cycle());
        (0..4).for_each(|_| {
            Domain::global().collect();
        });
        heap().map(|heap| (cycles, heap))
    };
    let lengths = [cycles, cycles, 2 * cycles, 4 * cycles, 8 * cycles];
    let seen: Vec<(usize, usize)> = lengths.into_iter().filter_map(&mut measure).collect();
    let grew = |pair: &[(usize, usize)]| pair[1].1 > pair[0].1 + KEPT.1.max(KEPT.0 * pair[1].0);
    if seen.len() == lengths.len() && seen.windows(2).all(grew) {
        return Err(format!("{what} keep memory: [cycles, bytes of the heap after them] are {seen:?}"));
    }
    Ok(())
}

/// Changes that need freed memory: without a worker none is refused.
fn changes() -> Finding {
    let limits = Limits { cpus: 1, memory: 1 << 26 };
    for (kind, flags) in [
        (MapKind::Hash, MapFlags::default()),
        (MapKind::LruHash, MapFlags::default()),
        (MapKind::LpmTrie, MapFlags::NO_PREALLOC),
    ] {
        let spec = MapSpec { flags, ..MapSpec::new("last", kind, 8, 32, 16) };
        let map = Map::create(&spec, &limits).map_err(|error| paceline::with_causes(&error))?;
        for n in 0..2000u64 {
            let key = [32u32.to_ne_bytes(), (n as u32 % 16).to_be_bytes()].concat();
            map.insert(&key, &[n as u8; 32])
                .map_err(|error| format!("{kind:?}, no worker, change {n}: {error:?}"))?;
            if n % 16 == 15 {
                map.delete(&key).map_err(|error| format!("{kind:?}, no worker, remove {n}: {error:?}"))?;
            }
        }
    }
    Ok(())
}

/// Drops everything in random order; afterwards nothing is retired or allocated.
pub(super) fn check(world: World, rng: &mut Rng) -> Finding {
    for table in &world.tables {
        table.compare()?;
    }
    let ids = world.ids.clone();
    let mut parts: Vec<Box<dyn std::any::Any>> = world.others;
    parts.extend(world.loaded.into_iter().map(|part| Box::new(part) as _));
    parts.extend(world.runs.into_iter().map(|part| Box::new(part) as _));
    parts.extend(world.hosts.into_iter().map(|part| Box::new(part) as _));
    parts.extend(world.tables.into_iter().map(|part| Box::new(part) as _));
    parts.extend(world.stalls.into_iter().map(|part| Box::new(part) as _));
    rng.shuffle(&mut parts);
    parts.into_iter().for_each(drop);
    let domain = Domain::global();
    changes()?;
    for _ in 0..16 {
        domain.collect();
    }
    if domain.pending() > 0 {
        return Err(format!("{} things wait, and there is no worker", domain.pending()));
    }
    let left: Vec<String> =
        ids.iter().filter_map(|id| Map::by_id(*id)).map(|map| map.spec().name.clone()).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("maps are left that nobody has: {}", left.join(", "))) }
}
