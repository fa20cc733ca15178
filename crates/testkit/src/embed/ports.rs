//! Pipelines: each port is served, and each packet is accounted for, also if workers fail.

use std::sync::Arc;

use fastrand::Rng;
use paceline::port::MemoryPort;
use paceline::{FrameMeta, Map, Pipeline, Target, Verdict, Worker};

use super::finding::{Finding, refused};
use super::op::{Op, op};
use super::programs::load_object;
use super::world::World;

pub(super) const OPS: &[Op] = &[op("steer", 6, steer), op("starve", 3, starve)];

/// Interfaces with ports.
const PORTS: u32 = 3;

/// A worker with a port for each interface, and the other ends of these ports and of the port for passed packets.
struct Ends {
    worker: Worker,
    wires: Vec<MemoryPort>,
    stack: MemoryPort,
}

fn ends(pipeline: &Pipeline, cpu: usize, room: usize) -> Ends {
    let mut worker = pipeline.worker(cpu);
    let wires = (1..=PORTS).map(|ifindex| {
        let (card, wire) = MemoryPort::link(room);
        worker.attach(ifindex, cpu as u16, card);
        wire
    });
    let wires = wires.collect();
    let (port, stack) = MemoryPort::link(room);
    worker.deliver_to(port);
    Ends { worker, wires, stack }
}

impl Ends {
    fn take(&self) -> u64 {
        let out = |port: &MemoryPort| std::iter::from_fn(|| port.pop()).count() as u64;
        self.wires.iter().map(out).sum::<u64>() + out(&self.stack)
    }
}

/// Targets of the redirect maps.
fn fill_targets(devices: &Map, cpus: &Map, rng: &mut Rng) {
    for index in 0..4u32 {
        let (ifindex, length) = (rng.u32(0..5), rng.u32(1..200));
        let _refused = devices.insert(&index.to_ne_bytes(), &ifindex.to_ne_bytes());
        let _refused = cpus.insert(&index.to_ne_bytes(), &length.to_ne_bytes());
    }
}

fn steer(world: &mut World, rng: &mut Rng) -> Finding {
    let Some(index) = load_object(world, rng, "steer", false)? else { return Ok(()) };
    let loaded = &world.loaded[index];
    fill_targets(loaded.map("devices")?, loaded.map("cpus")?, rng);
    let target = Target::from(loaded.program("steer")?.program());
    let pipeline = Pipeline::new();
    for ifindex in 1..=PORTS {
        if rng.u8(0..4) > 0 {
            match pipeline.set_program(ifindex, Some(&target)) {
                Err(_) if world.may_refuse() => return Ok(()),
                set => set.map(drop).map_err(|error| paceline::with_causes(&error))?,
            }
        }
    }
    pipeline.add_maps(&loaded.collection.maps().iter().map(Arc::clone).collect::<Vec<_>>());
    // Only CPUs for which the per-CPU map has values.
    let cpus = loaded.map("steered")?.user_value_size() / 8;
    let room = *rng.choice(&[1000, 1000, 40]).unwrap_or(&1000);
    let mut workers: Vec<Ends> =
        (0..rng.usize(1..=cpus.min(2))).map(|cpu| ends(&pipeline, cpu, room)).collect();
    let (mut accepted, mut out) = (0, 0);
    for _ in 0..rng.u32(1..20) {
        for worker in &workers {
            for wire in &worker.wires {
                for _ in 0..rng.u32(0..40) {
                    let mut packet = [0; 60];
                    packet[0] = rng.u8(..);
                    accepted += u64::from(wire.push(&packet, FrameMeta::default()));
                }
            }
        }
        let chosen = rng.usize(..workers.len());
        workers[chosen].worker.poll().map_err(|error| paceline::with_causes(&error))?;
        if rng.bool() {
            out += workers.iter().map(Ends::take).sum::<u64>();
        }
    }
    // Each receives the remaining packets of its ports; packets for other CPUs may remain queued.
    for worker in &mut workers {
        while worker.worker.poll().map_err(|error| paceline::with_causes(&error))? > 0 {
            out += worker.take();
        }
    }
    out += workers.iter().map(Ends::take).sum::<u64>();
    drop(workers);
    let counts = pipeline.counts();
    let ended = counts.of(Verdict::Drop) + counts.of(Verdict::Aborted);
    let told = out + ended + counts.refused + counts.no_target + counts.stopped + counts.lost;
    // A packet without a target counts as aborted or as without target, or both.
    if told < accepted {
        return Err(format!(
            "{accepted} packets came in, {out} went out, and {counts:?} tells of {ended} dropped"
        ));
    }
    Ok(())
}

/// A port whose packets make a program fault must not delay other ports.
fn starve(world: &mut World, rng: &mut Rng) -> Finding {
    let Some(index) = load_object(world, rng, "steer", false)? else { return Ok(()) };
    let loaded = &world.loaded[index];
    let program =
        loaded.collection.program_unverified(Some("steer")).map_err(|error| paceline::with_causes(&error))?;
    let program = program.with_budget(rng.u64(20..100));
    let pipeline = Pipeline::new();
    let bad = rng.u32(1..=PORTS);
    pipeline.set_program(bad, Some(&Target::from(&program))).map_err(refused)?;
    let mut ends = ends(&pipeline, 0, 64);
    for (wire, ifindex) in ends.wires.iter().zip(1..) {
        if ifindex != bad {
            wire.push(&[1; 60], FrameMeta::default());
        }
    }
    for _ in 0..64 {
        // A packet that takes long.
        ends.wires[bad as usize - 1].push(&[255; 60], FrameMeta::default());
        drop(ends.worker.poll());
    }
    match ends.take() {
        out if out < u64::from(PORTS) - 1 => {
            Err(format!("of {} ports beside a faulty one {out} are served", PORTS - 1))
        }
        _ => Ok(()),
    }
}
