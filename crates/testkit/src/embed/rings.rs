//! Ring buffers: submitted records come out, also after faults, and the reader is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::{Host, Limits, Map, MapKind, MapSpec};

use super::end::growth;
use super::finding::Finding;
use super::op::{Op, op};
use super::programs::{load_object, of};
use super::world::{World, packets};

pub(super) const OPS: &[Op] = &[
    op("records", 4, records),
    op("fault with a record", 4, fault),
    op("origins", 2, origins),
    op("wait", 2, wait),
];

/// Submits some records and discards others; all submitted ones must come out.
fn records(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "rings")?;
    let loaded = &world.loaded[index];
    let Ok(program) = loaded.program("record") else { return Ok(()) };
    let ring = Arc::clone(loaded.map("ring")?);
    let Some(ring) = ring.ring_buffer() else { return Ok(()) };
    let mut host = Host::new(0);
    if rng.u8(0..3) == 0 {
        ring.keep_origins();
    }
    ring.consume(|_| {});
    let mut torn = 0;
    for _ in 0..rng.usize(1..8) {
        let order = rng.u8(..);
        let count = rng.usize(1..=32);
        let mut burst = packets(&[order], count);
        program.run_burst(&mut burst, &mut host).map_err(|fault| fault.fault.to_string())?;
        let submitted = if order & 1 == 1 { 0 } else { count };
        let came = ring.consume(|record| {
            let words: Vec<u64> = record
                .chunks_exact(8)
                .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
                .collect();
            torn += usize::from(words.len() != 4 || words[3] != words[0] + words[1] + words[2]);
        });
        if (came, torn) != (submitted, 0) {
            let waiting = ring.available();
            return Err(format!(
                "{submitted} records are submitted, {came} come out, {torn} torn; {waiting} bytes wait, {} lost",
                ring.lost()
            ));
        }
    }
    Ok(())
}

/// An unverified program ends at any point, perhaps with a reserved record.
fn fault(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "rings")?;
    let loaded = &world.loaded[index];
    let program = loaded
        .collection
        .program_unverified(Some("record"))
        .map_err(|error| paceline::with_causes(&error))?;
    let program = program.with_budget(rng.u64(0..200));
    let mut burst = packets(&[rng.u8(..)], rng.usize(1..4));
    drop(program.run_burst(&mut burst, &mut Host::new(0)));
    if rng.bool() { records(world, rng) } else { Ok(()) }
}

/// The recorded origins of records are freed with them.
fn origins(world: &mut World, rng: &mut Rng) -> Finding {
    let Some(index) = load_object(world, rng, "rings", false)? else { return Ok(()) };
    let loaded = &world.loaded[index];
    let Ok(program) = loaded.program("record") else { return Ok(()) };
    let ring = Arc::clone(loaded.map("ring")?);
    let Some(ring) = ring.ring_buffer() else { return Ok(()) };
    ring.keep_origins();
    let order = [rng.u8(0..4)];
    let mut host = Host::new(0);
    let mut burst = packets(&order, 32);
    growth("records", 40, || {
        drop(program.run_burst(&mut burst, &mut host));
        ring.consume_records(|_| {});
    })
}

/// A waiting reader must be woken by a record. There is one record at a time, so that nothing else wakes it.
fn wait(world: &mut World, rng: &mut Rng) -> Finding {
    let map = Map::create(
        &MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096),
        &Limits { cpus: 1, memory: 1 << 20 },
    )
    .map_err(|error| paceline::with_causes(&error))?;
    world.know(&map);
    let (Some(writer), Some(ring)) = (map.for_programs().ring_buffer(), map.ring_buffer()) else {
        return Ok(());
    };
    let (done, read) = (AtomicBool::new(false), AtomicU64::new(0));
    let spins = rng.u32(1..200);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut written = 0;
            while !done.load(Ordering::Relaxed) {
                if read.load(Ordering::Acquire) == written && writer.output(&[1; 8], 0).is_ok() {
                    written += 1;
                }
                (0..written as u32 % spins).for_each(|_| std::hint::spin_loop());
            }
        });
        let start = Instant::now();
        let mut result = Ok(());
        while start.elapsed() < Duration::from_millis(400) && result.is_ok() {
            read.fetch_add(ring.consume(|_| {}) as u64, Ordering::Release);
            let began = Instant::now();
            let woken = ring.wait(Duration::from_millis(300));
            // The writer had enough time for its next record, and did not write it.
            if !woken && began.elapsed() >= Duration::from_millis(300) {
                let there = ring.available() > 0;
                std::thread::sleep(Duration::from_millis(20));
                if there {
                    result = Err("a reader waits while there is a record".to_owned());
                }
            }
        }
        done.store(true, Ordering::Relaxed);
        result
    });
    world.others.push(Box::new(map));
    result
}
