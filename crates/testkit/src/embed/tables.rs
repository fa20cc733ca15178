//! Maps used from user space, compared with a model.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use paceline::{Errno, InitialValue, Limits, Map, MapFlags, MapKind, MapSpec};

use super::finding::Finding;
use super::op::{Op, op};
use super::table::{KEY, Table, prefix};
use super::world::{World, limits};

pub(super) const OPS: &[Op] = &[
    op("create", 3, |world, rng| create(world, rng).map(drop)),
    op("change", 8, change),
    op("routes", 3, routes),
    op("compare", 4, |world, rng| pick(world, rng).and_then(|table| world.tables[table].compare())),
    op("batch", 2, batch),
    op("typed", 1, typed),
    op("freeze", 1, freeze),
    op("fill", 2, fill),
    op("odd", 2, odd),
    op("drop map", 1, drop_one),
];

fn spec(rng: &mut Rng) -> MapSpec {
    let kinds = [
        MapKind::Hash,
        MapKind::Hash,
        MapKind::PerCpuHash,
        MapKind::Array,
        MapKind::PerCpuArray,
        MapKind::LruHash,
        MapKind::LpmTrie,
        MapKind::Queue,
        MapKind::Stack,
    ];
    let kind = *rng.choice(&kinds).unwrap_or(&MapKind::Hash);
    let key = match kind {
        MapKind::Array | MapKind::PerCpuArray => 4,
        MapKind::Queue | MapKind::Stack => 0,
        _ => KEY as u32,
    };
    let value = 8 * rng.u32(1..=40);
    let entries = *rng.choice(&[1, 3, 16, 100, 1000]).unwrap_or(&1);
    let flags = match kind {
        MapKind::LpmTrie => MapFlags::NO_PREALLOC,
        MapKind::Hash | MapKind::PerCpuHash if rng.bool() => MapFlags::NO_PREALLOC,
        _ => MapFlags::default(),
    };
    MapSpec { flags, ..MapSpec::new("table", kind, key, value, entries) }
}

fn add(world: &mut World, spec: &MapSpec, limits: &Limits) -> Result<usize, String> {
    let map = Map::create(spec, limits).map_err(|error| format!("cannot make {spec:?}: {error}"))?;
    world.know(&map);
    world.tables.push(Table { map, contents: BTreeMap::new(), queue: VecDeque::new(), frozen: false });
    Ok(world.tables.len() - 1)
}

fn create(world: &mut World, rng: &mut Rng) -> Result<usize, String> {
    let (spec, limits) = (spec(rng), limits(rng));
    add(world, &spec, &limits)
}

fn pick(world: &mut World, rng: &mut Rng) -> Result<usize, String> {
    if world.tables.is_empty() { create(world, rng) } else { Ok(rng.usize(..world.tables.len())) }
}

fn change(world: &mut World, rng: &mut Rng) -> Finding {
    let (index, may_refuse) = (pick(world, rng)?, world.may_refuse());
    let table = &mut world.tables[index];
    for _ in 0..rng.u32(1..=200) {
        let (key, value) = (table.key(rng), table.value(rng));
        match rng.u8(0..8) {
            0..4 => {
                let flags = *rng.choice(&[0, 0, 0, 1, 2]).unwrap_or(&0);
                // Evicted elements are unknown.
                let any = table.is_queue() || matches!(table.kind(), MapKind::LpmTrie | MapKind::LruHash);
                let flags = if any { 0 } else { flags };
                if !table.set(&key, &value, flags, may_refuse)? {
                    return Ok(());
                }
            }
            4 | 5 if table.is_queue() => table.pop()?,
            4 | 5 => table.remove(&key)?,
            _ if table.is_queue() => {}
            _ => table.get(&key)?,
        }
    }
    Ok(())
}

/// Routes of a new shape: sparse or dense, short or long.
fn routes(world: &mut World, rng: &mut Rng) -> Finding {
    let known = world.tables.iter().position(|table| table.kind() == MapKind::LpmTrie && !table.frozen);
    let index = match known {
        Some(index) => index,
        None => {
            let entries = *rng.choice(&[16, 256, 1000]).unwrap_or(&16);
            let trie = MapSpec::new("routes", MapKind::LpmTrie, 8, 8, entries);
            add(
                world,
                &MapSpec { flags: MapFlags::NO_PREALLOC, ..trie },
                &Limits { cpus: 1, memory: 1 << 26 },
            )?
        }
    };
    let may_refuse = world.may_refuse();
    let table = &mut world.tables[index];
    for _ in 0..rng.u32(1..=4) {
        let shape = rng.u8(0..4);
        for i in 0..table.entries() as u32 {
            let key = match shape {
                0 => prefix(32, rng.u32(..) << 8 | i),
                1 => prefix(24, (10 << 24) + ((2 * i) << 8)),
                2 => prefix(32, (10 << 24) + 2 * i),
                _ => prefix(rng.u32(8..=32), rng.u32(..) << 4),
            };
            let value = table.value(rng);
            if !table.set(&key, &value, 0, may_refuse)? {
                break;
            }
        }
        let keys: Vec<Vec<u8>> = table.contents.keys().cloned().collect();
        for key in keys {
            if rng.u8(0..8) > 0 {
                table.remove(&key)?;
            }
        }
        table.compare()?;
    }
    Ok(())
}

fn batch(world: &mut World, rng: &mut Rng) -> Finding {
    let (index, may_refuse) = (pick(world, rng)?, world.may_refuse());
    let table = &mut world.tables[index];
    if table.frozen || table.kind() != MapKind::Hash {
        return Ok(());
    }
    let free = table.entries() - table.contents.len();
    let pairs: Vec<(Vec<u8>, Vec<u8>)> =
        (0..rng.usize(..=free)).map(|_| (table.key(rng), table.value(rng))).collect();
    match table.map.update_batch(pairs.iter().map(|(key, value)| (key, value)), 0) {
        Ok(_) => table.contents.extend(pairs),
        Err(_) if may_refuse => drop(world.tables.remove(index)),
        Err(error) => return Err(format!("a batch with room for it: {error}")),
    }
    Ok(())
}

fn typed(world: &mut World, rng: &mut Rng) -> Finding {
    let index = pick(world, rng)?;
    let table = &world.tables[index];
    if let Ok(view) = table.map.typed::<u64, u64>() {
        let key = rng.u64(..16);
        let got = view
            .lookup(&key)
            .map_err(|error| format!("typed get: {error:?}"))?
            .map(|value| value.to_ne_bytes().to_vec());
        if table.kind() != MapKind::LruHash && got != table.find(&key.to_ne_bytes()).ok() {
            return Err(format!("typed get of {key} gives {got:?}"));
        }
    }
    Ok(())
}

fn freeze(world: &mut World, rng: &mut Rng) -> Finding {
    let index = pick(world, rng)?;
    let table = &mut world.tables[index];
    let (got, expected) = (table.map.freeze(), if table.frozen { Err(Errno::EPERM) } else { Ok(()) });
    table.frozen = true;
    if got == expected { Ok(()) } else { Err(format!("freeze gives {got:?}")) }
}

fn fill(world: &mut World, rng: &mut Rng) -> Finding {
    let (index, may_refuse) = (pick(world, rng)?, world.may_refuse());
    let table = &mut world.tables[index];
    if table.is_queue() {
        return Ok(());
    }
    let (key, value) = (table.key(rng), table.value(rng));
    let expected = table.expected(&key, 0);
    match table.map.fill(&[(key.clone(), InitialValue::Bytes(value.clone()))]) {
        Ok(()) if expected.is_ok() => drop(table.contents.insert(key, value)),
        Err(error) if expected.is_ok() && !(may_refuse && error.errno == Errno::ENOMEM) => {
            return Err(format!("fill: {error}"));
        }
        Ok(()) | Err(_) => {}
    }
    table.compare()
}

/// Arguments of wrong sizes, and operations that the kind does not support, must be errors without effect.
fn odd(world: &mut World, rng: &mut Rng) -> Finding {
    let index = pick(world, rng)?;
    let map = &world.tables[index].map;
    let key = vec![rng.u8(..); rng.usize(0..=17)];
    let value = vec![rng.u8(..); rng.usize(0..=3)];
    if map.update_raw(&key, &value, rng.u64(..)).is_ok() {
        return Err(format!("{:?} takes a value of {} bytes", map.spec().kind, value.len()));
    }
    let _ = (
        map.lookup(&key),
        map.next_key(Some(&key)),
        map.for_programs().direct_value(rng.u32(..)),
        map.for_programs().array_layout(),
    );
    let _ = (
        map.redirect_target(rng.u32(..)),
        map.ring_buffer().is_some(),
        map.for_programs().prog_array().is_some(),
    );
    if key.len() != map.spec().key_size as usize && map.delete(&key).is_ok() {
        return Err("a key of another length is removed".to_owned());
    }
    // Creation fails with an error.
    let mut spec = spec(rng);
    match rng.u8(0..4) {
        0 => spec.value_size = rng.u32(..),
        1 => spec.max_entries = rng.u32(..),
        2 => spec.flags = MapFlags(rng.u32(..)),
        _ => spec.key_size = rng.u32(..),
    }
    drop(Map::create(&spec, &Limits { cpus: rng.usize(0..300), memory: 1 << 24 }));
    world.tables[index].compare()
}

fn drop_one(world: &mut World, rng: &mut Rng) -> Finding {
    let index = pick(world, rng)?;
    drop(world.tables.remove(index));
    Ok(())
}
