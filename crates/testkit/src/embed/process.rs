//! The process: forks, denied system calls, exhausted memory.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::{Engine, Host, Limits, LoadOptions, Map, MapKind, MapSpec, Verdict};
use paceline_epoch::Domain;

use super::finding::{Finding, refused};
use super::op::{Op, op};
use super::programs::{load_object, object};
use super::system::{deny_membarrier, in_child, short_of_memory};
use super::world::{World, packets};

pub(super) const OPS: &[Op] = &[
    op("fork", 4, fork),
    op("deny membarrier", 1, |world, _| {
        world.denied |= deny_membarrier();
        Ok(())
    }),
    op("out of memory", 3, out_of_memory),
];

/// A forked child continues with a program that the parent drops; both change their maps, and free them.
fn fork(world: &mut World, rng: &mut Rng) -> Finding {
    let Some(index) = load_object(world, rng, "tables", false)? else { return Ok(()) };
    let loaded = world.loaded.remove(index);
    let program = loaded.program("tables")?.clone();
    let hash = Arc::clone(loaded.map("hash")?);
    // Each process has its own maps after the fork.
    let shared = RefCell::new(Some((loaded, program, hash)));
    let wanted = rng.u8(..);
    let (may_refuse, pause) = (world.may_refuse(), Duration::from_millis(rng.u64(0..30)));
    in_child(
        || {
            std::thread::sleep(pause);
            drop(shared.take());
            // New allocations reuse freed memory.
            (0..3).for_each(|_| {
                Domain::global().collect();
            });
            if let Ok(object) = object("steer")
                && let Ok(collection) = object.load(&LoadOptions::default())
            {
                let _ = collection.program(Some("steer"));
            }
        },
        || {
            let Some((_, program, hash)) = shared.take() else { return Ok(()) };
            let mut host = Host::new(0);
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(100) {
                let mut burst = packets(&[wanted, 0, 0, 0], 8);
                program.run_burst(&mut burst, &mut host).map_err(|fault| fault.fault.to_string())?;
                if burst.iter().any(|frame| frame.verdict() != Verdict::Pass) {
                    return Err("another verdict".to_owned());
                }
            }
            for n in 0..100u64 {
                hash.insert(&n.to_ne_bytes(), &[0; 32]).map_err(|error| format!("set: {error:?}"))?;
            }
            let domain = Domain::global();
            (0..100).for_each(|_| domain.retire([0u8; 64]));
            domain.collect();
            match domain.pending() {
                pending if pending > 100 && !may_refuse => {
                    Err(format!("{pending} things wait, and there is no worker"))
                }
                _ => Ok(()),
            }
        },
    )
}

/// Maps and programs that exceed the memory must be errors.
fn out_of_memory(world: &mut World, rng: &mut Rng) -> Finding {
    let sizes: Vec<u32> = (0..6).map(|_| 1 << rng.u32(4..22)).collect();
    let kind = *rng
        .choice(&[MapKind::Hash, MapKind::Array, MapKind::LruHash, MapKind::PerCpuArray])
        .unwrap_or(&MapKind::Hash);
    let engine = world.engine(rng);
    let mut kept = Vec::new();
    short_of_memory(24 << 20, || {
        for entries in sizes {
            let key = if matches!(kind, MapKind::Array | MapKind::PerCpuArray) { 4 } else { 8 };
            let spec = MapSpec::new("large", kind, key, 64, entries);
            // Small allocations must succeed: Rust aborts the process if they fail.
            if entries >= 1 << 18 {
                kept.extend(Map::create(&spec, &Limits { cpus: 2, memory: 1 << 40 }).ok());
            } else {
                drop(Map::create(&spec, &Limits { cpus: 2, memory: 1 << 40 }));
            }
            let options = LoadOptions::default().engine(engine);
            if let Ok(object) = object("tables")
                && let Ok(collection) = object.load(&options)
                && let Ok(program) = collection.program(Some("tables"))
            {
                let mut burst = packets(&[3], 4);
                let _ = program.run_burst(&mut burst, &mut Host::new(0));
            }
        }
    });
    // Refused operations succeed after memory is freed.
    let options = LoadOptions::default().engine(engine);
    let collection =
        object("tables")?.load(&options).map_err(|error| refused(format!("memory is back: {error}")))?;
    if !world.denied || engine != Engine::Jit {
        collection.program(Some("tables")).map_err(|error| refused(format!("memory is back: {error}")))?;
    }
    kept.iter().for_each(|map| world.know(map));
    Ok(())
}
