//! Two workers on separate threads while another thread changes their maps and programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::port::MemoryPort;
use paceline::{
    Change, Errno, FrameMeta, Host, Limits, LiveChain, LoadOptions, Map, Order, Pipeline, Target, Verdict,
};

use super::end::growth;
use super::finding::{Finding, refused};
use super::loaded::Loaded;
use super::op::{Op, op};
use super::programs::{load_object, object};
use super::system::{peak, reset_peak};
use super::world::{World, packets, total};

pub(super) const OPS: &[Op] = &[
    op("two workers", 4, workers),
    op("two pipelines", 2, pipelines),
    op("freeze while set", 2, freeze),
    op("replaced members", 1, members),
    op("loads", 1, loads),
    op("elements", 1, elements),
];

const RUNS: Duration = Duration::from_millis(200);

/// Loads an object for two CPUs.
fn for_two(world: &mut World, rng: &mut Rng, source: &'static str) -> Result<Loaded, String> {
    let engine = world.engine(rng);
    let limits = Limits { cpus: 2, memory: 1 << 26 };
    let object = object(source)?;
    let collection = object
        .load(&LoadOptions::default().engine(engine).limits(limits))
        .map_err(|error| refused(format!("{source}: {error}")))?;
    collection.maps().iter().for_each(|map| world.know(map));
    let names = object.programs().iter().map(|program| program.name.clone());
    let programs =
        names.filter_map(|name| Some((name.clone(), collection.program(Some(&name)).ok()?))).collect();
    Ok(Loaded { source, collection, programs })
}

/// A value that detects torn reads.
fn value(key: u64) -> Vec<u8> {
    [key, key.wrapping_mul(3), key.wrapping_mul(5).wrapping_add(1), !key]
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .collect()
}

fn is_whole(bytes: &[u8]) -> bool {
    let key = bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    bytes == value(key)
}

/// One change of the tables from user space; values that it reads must not be torn.
fn disturb(loaded: &Loaded, rng: &mut Rng) -> Finding {
    let key = rng.u64(..512);
    let name = *rng.choice(&["hash", "lru", "routes"]).unwrap_or(&"hash");
    let map = loaded.map(name)?;
    let bytes = match name {
        "routes" => {
            let len = rng.u32(16..=32);
            let bits = (key as u32).swap_bytes() >> (32 - len) << (32 - len);
            [len.to_ne_bytes(), bits.to_be_bytes()].concat()
        }
        _ => key.to_ne_bytes().to_vec(),
    };
    match rng.u8(0..4) {
        0 => match map.delete(&bytes) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(format!("{name} remove: {error:?}")),
        },
        1 => match map.lookup(&bytes) {
            Ok(found) if !is_whole(&found) => Err(format!("{name} has a torn value {found:x?}")),
            _ => Ok(()),
        },
        _ => match map.insert(&bytes, &value(key)) {
            Ok(()) | Err(Errno::E2BIG | Errno::ENOSPC | Errno::ENOMEM) => Ok(()),
            Err(error) => Err(format!("{name} set: {error:?}")),
        },
    }
}

/// Replaces programs and inner maps.
fn replace(loaded: &Loaded, chain: &LiveChain, rng: &mut Rng) -> Finding {
    let at = rng.u32(0..4).to_ne_bytes();
    match rng.u8(0..4) {
        0 => drop(loaded.program("leaf")?.program().install(loaded.map("leaves")?, rng.u32(0..4))),
        1 => {
            let _none = loaded.map("leaves")?.delete(&at);
        }
        2 => {
            let outer = loaded.map("outer")?;
            if let Some(spec) = outer.spec().inner.as_deref()
                && let Ok(inner) = Map::create(spec, &Limits { cpus: 2, memory: 1 << 26 })
            {
                let _refused = outer.insert(&at, &inner.id().to_ne_bytes());
            }
        }
        _ => {
            let member = loaded.collection.member("member", Some("tables")).map_err(refused)?;
            drop(chain.change(None, vec![Change::Replace { name: "member".to_owned(), member }]));
        }
    }
    Ok(())
}

fn workers(world: &mut World, rng: &mut Rng) -> Finding {
    let loaded = for_two(world, rng, "tables")?;
    let member = loaded.collection.member("member", Some("tables")).map_err(refused)?;
    let chain = match LiveChain::new(vec![member], Order::Given) {
        Ok(chain) => chain,
        Err(_) if world.may_refuse() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let (done, ran) = (AtomicBool::new(false), AtomicU64::new(0));
    let seed = rng.u64(..);
    let found = std::thread::scope(|scope| {
        let work = |cpu: usize| {
            let (chain, done, ran) = (&chain, &done, &ran);
            move || -> Finding {
                let mut rng = Rng::with_seed(seed ^ cpu as u64);
                let (mut host, mut worker) = (Host::new(cpu), chain.worker());
                if cpu == 1 {
                    worker = worker.counted().map_err(refused)?;
                }
                while !done.load(Ordering::Relaxed) {
                    let mut burst = packets(&rng.u32(..).to_ne_bytes(), 32);
                    worker.run_burst(&mut burst, &mut host).map_err(|fault| fault.fault.to_string())?;
                    ran.fetch_add(32, Ordering::Relaxed);
                    if !burst.iter().all(|frame| matches!(frame.verdict(), Verdict::Pass | Verdict::Tx)) {
                        return Err("a verdict that no program returns".to_owned());
                    }
                }
                Ok(())
            }
        };
        let threads = [scope.spawn(work(0)), scope.spawn(work(1))];
        let start = Instant::now();
        let mut found = Ok(());
        while start.elapsed() < RUNS && found.is_ok() {
            found =
                (0..50).try_for_each(|_| disturb(&loaded, rng)).and_then(|()| replace(&loaded, &chain, rng));
        }
        done.store(true, Ordering::Relaxed);
        let ended = threads.map(|thread| thread.join().unwrap_or_else(|_| Err("a worker panics".to_owned())));
        ended.into_iter().fold(found, Result::and)
    });
    found?;
    let (ran, counts) = (ran.into_inner(), loaded.map("counts")?);
    let seen = (total(counts, 0), total(loaded.map("shared")?, 0), total(counts, 1));
    if seen != (ran, ran, 0) {
        return Err(format!("{ran} packets ran; [counted by CPU, counted by all, torn values] are {seen:?}"));
    }
    Ok(())
}

/// Workers with ports, which pass packets to each other's CPUs.
fn pipelines(world: &mut World, rng: &mut Rng) -> Finding {
    let loaded = for_two(world, rng, "steer")?;
    for cpu in 0..2u32 {
        let _refused = loaded.map("cpus")?.insert(&cpu.to_ne_bytes(), &1000u32.to_ne_bytes());
    }
    let pipeline = Pipeline::new();
    let target = Target::from(loaded.program("steer")?.program());
    pipeline.set_program(1, Some(&target)).map_err(refused)?;
    let done = AtomicBool::new(false);
    let seed = rng.u64(..);
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2usize)
            .map(|cpu| {
                let (pipeline, done) = (&pipeline, &done);
                scope.spawn(move || -> Result<(u64, u64), String> {
                    let mut rng = Rng::with_seed(seed ^ cpu as u64);
                    let (card, wire) = MemoryPort::link(256);
                    let (port, stack) = MemoryPort::link(4096);
                    let (mut accepted, mut out) = (0, 0);
                    let mut worker = pipeline.worker(cpu);
                    worker.attach(1, 0, card);
                    worker.deliver_to(port);
                    while !done.load(Ordering::Relaxed) {
                        for _ in 0..32 {
                            let mut packet = [0; 60];
                            packet[0] = rng.u8(..) & 0xef;
                            accepted += u64::from(wire.push(&packet, FrameMeta::default()));
                        }
                        worker.poll().map_err(|error| paceline::with_causes(&error))?;
                        out += std::iter::from_fn(|| wire.pop().or_else(|| stack.pop())).count() as u64;
                    }
                    // No more packets arrive; waits for packets from the other CPU.
                    for _ in 0..50 {
                        while worker.poll().map_err(|error| paceline::with_causes(&error))? > 0 {}
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    out += std::iter::from_fn(|| wire.pop().or_else(|| stack.pop())).count() as u64;
                    Ok((accepted, out))
                })
            })
            .collect();
        let start = Instant::now();
        while start.elapsed() < RUNS {
            drop(pipeline.set_program(1, Some(&target)));
            std::thread::sleep(Duration::from_micros(500));
        }
        done.store(true, Ordering::Relaxed);
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a worker panics".to_owned())));
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let (accepted, out) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let told = pipeline.counts();
    let ended = told.of(Verdict::Drop) + told.of(Verdict::Aborted);
    if out + ended + told.refused + told.no_target + told.stopped + told.lost < accepted {
        return Err(format!("{accepted} packets came in, {out} went out, and there is {told:?}"));
    }
    Ok(())
}

/// After a freeze returns, no earlier update may still change a value.
fn freeze(world: &mut World, rng: &mut Rng) -> Finding {
    let spec = paceline::MapSpec::new("frozen", paceline::MapKind::Array, 4, 2048, 64);
    for _ in 0..40 {
        let map = Map::create(&spec, &Limits { cpus: 1, memory: 1 << 26 })
            .map_err(|error| paceline::with_causes(&error))?;
        world.know(&map);
        let pause = rng.u32(0..2000);
        let (before, after) = std::thread::scope(|scope| {
            let setter = scope.spawn(|| {
                (0..u32::MAX)
                    .take_while(|n| map.insert(&(n % 64).to_ne_bytes(), &[*n as u8; 2048]).is_ok())
                    .count()
            });
            (0..pause).for_each(|_| std::hint::spin_loop());
            // As in the kernel, a freeze fails during a write.
            while map.freeze() == Err(Errno::EBUSY) {}
            let all = || (0..64u32).map(|n| map.lookup(&n.to_ne_bytes())).collect::<Vec<_>>();
            let before = all();
            let _sets = setter.join();
            (before, all())
        });
        if before != after {
            return Err("a frozen map changes".to_owned());
        }
    }
    Ok(())
}

/// Memory of members that left a chain is bounded.
fn members(world: &mut World, rng: &mut Rng) -> Finding {
    let Some(index) = load_object(world, rng, "steer", false)? else { return Ok(()) };
    if world.may_refuse() {
        return Ok(());
    }
    let loaded = &world.loaded[index];
    let member = || loaded.collection.member("member", Some("pass")).map_err(refused);
    let chain = LiveChain::new(vec![member()?], Order::Given).map_err(refused)?;
    let (mut worker, mut host) = (chain.worker().counted().map_err(refused)?, Host::new(0));
    growth("replaced members", 25, || {
        let Ok(member) = member() else { return };
        drop(chain.change(None, vec![Change::Replace { name: "member".to_owned(), member }]));
        drop(worker.run_burst(&mut packets(&[0], 2), &mut host));
    })
}

/// Loading and dropping leaves no memory.
fn loads(world: &mut World, rng: &mut Rng) -> Finding {
    if world.may_refuse() {
        return Ok(());
    }
    let source = *rng.choice(&["timers", "tables", "rings", "steer"]).unwrap_or(&"tables");
    let engine = world.engine(rng);
    let object = Arc::new(object(source)?);
    growth(&format!("loads of {source} on {engine}"), 4, || {
        if let Ok(collection) = object.load(&LoadOptions::default().engine(engine)) {
            let mut host = Host::new(0);
            for spec in object.programs() {
                if let Ok(program) = collection.program(Some(&spec.name)) {
                    drop(program.run_burst(&mut packets(&[5], 2), &mut host));
                }
            }
            let _ = host.fire_timers();
        }
    })
}

/// Maximum additional bytes of an iteration over all elements of a map, whatever their number.
const RUN_BYTES: usize = 1 << 20;

/// A program iterates over all elements of a large map, which takes no memory per element.
fn elements(world: &mut World, rng: &mut Rng) -> Finding {
    if world.may_refuse() {
        return Ok(());
    }
    let (engine, count) = (world.engine(rng), 1 << rng.u32(15..17));
    let mut object = object("tables")?;
    for map in &mut object.specs_mut().maps {
        if map.name == "hash" {
            map.max_entries = count;
        }
    }
    let options = LoadOptions::default().engine(engine);
    let collection = object.load(&options).map_err(|error| format!("a large map: {error}"))?;
    let hash = collection.map("hash").ok_or_else(|| refused("no map hash"))?;
    for key in 0..u64::from(count) {
        hash.insert(&key.to_ne_bytes(), &value(key)).map_err(|error| format!("element {key}: {error:?}"))?;
    }
    let program = collection.program(Some("elements")).map_err(|error| paceline::with_causes(&error))?;
    let (mut burst, mut host) = (packets(&[0], 1), Host::new(0));
    let Some(before) = reset_peak() else { return Ok(()) };
    program.run_burst(&mut burst, &mut host).map_err(|error| format!("elements: {}", error.fault))?;
    match peak() {
        Some(after) if after > before + RUN_BYTES => {
            Err(format!("a run over {count} elements takes {} bytes", after - before))
        }
        _ => Ok(()),
    }
}
