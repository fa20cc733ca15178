//! User code that the library calls: it reenters the API, drops values, and panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Host, KeyedSite, Map, Pipeline, Program, Target};
use paceline_epoch::Domain;

use super::finding::{Finding, refused};
use super::op::{Op, op};
use super::programs::of;
use super::world::{World, packets};

pub(super) const OPS: &[Op] =
    &[op("drop data", 4, drop_data), op("panic in a sink", 2, panic), op("call from a sink", 3, call)];

/// A value whose `Drop` queries everything that it can reach.
struct Bye {
    site: KeyedSite,
    pipeline: Pipeline,
    map: Arc<Map>,
    program: Option<Program>,
}

impl Drop for Bye {
    fn drop(&mut self) {
        let _ = (self.site.slots(), self.site.statistics(), self.site.users());
        let _ = self.map.insert(&[0; 4], &[0; 4]);
        if let Some(program) = self.program.take() {
            let _ = self.pipeline.set_program(7, Some(&Target::from(&program)));
            let _ = self.site.set(9, None);
        }
        Domain::global().collect();
    }
}

fn drop_data(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "steer")?;
    let loaded = &world.loaded[index];
    let program = loaded.program("pass")?.clone().into_program();
    let map = Arc::clone(loaded.map("devices")?);
    let pipeline = Pipeline::new();
    let site = if rng.bool() { pipeline.site().clone() } else { KeyedSite::by_key() };
    for n in 0..rng.u64(1..100) {
        let bye = Bye {
            site: site.clone(),
            pipeline: pipeline.clone(),
            map: Arc::clone(&map),
            program: rng.bool().then(|| program.clone()),
        };
        let target = Target::from(&program).with_data(bye);
        drop(site.set(n % 2, Some(&target)));
    }
    // A site in its own target's data would keep itself alive.
    (0..2).chain([7, 9]).for_each(|key| {
        drop(site.set(key, None));
        drop(pipeline.set_program(key as u32, None));
    });
    Ok(())
}

/// A panic of user code propagates from the run, or is caught in it; the host stays usable.
fn panic(world: &mut World, rng: &mut Rng) -> Finding {
    let index = of(world, rng, "rings")?;
    let Ok(program) = world.loaded[index].program("event") else { return Ok(()) };
    let mut host = Host::new(0);
    host.set_events(Box::new(|_| std::panic::resume_unwind(Box::new("the user's own"))));
    for _ in 0..2 {
        let mut burst = packets(&[0], rng.usize(1..4));
        let _unwound = catch_unwind(AssertUnwindSafe(|| drop(program.run_burst(&mut burst, &mut host))));
    }
    host.set_events(Box::new(|_| {}));
    let mut burst = packets(&[0], 2);
    program
        .run_burst(&mut burst, &mut host)
        .map_err(|fault| format!("after a panic in a sink: {}", fault.fault))
}

/// A sink that changes maps, replaces programs and frees values.
fn call(world: &mut World, rng: &mut Rng) -> Finding {
    let (rings, steer) = (of(world, rng, "rings")?, of(world, rng, "steer")?);
    let Ok(program) = world.loaded[rings].program("event") else { return Ok(()) };
    let other = world.loaded[steer].program("pass")?.clone().into_program();
    let ring = Arc::clone(world.loaded[rings].map("ring")?);
    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(program.program()))).map_err(refused)?;
    let mut host = Host::new(0);
    let seen = pipeline.clone();
    host.set_events(Box::new(move |_| {
        let _ = seen.set_program(1, Some(&Target::from(&other)));
        let _ = seen.set_program(2, None);
        if let (Some(ring), Some(reader)) = (ring.for_programs().ring_buffer(), ring.ring_buffer()) {
            let _ = ring.output(&[0; 8], 0);
            reader.consume(|_| {});
        }
        let (mut burst, mut host) = (packets(&[0], 1), Host::new(0));
        let _ = other.run_burst(&mut burst, &mut host);
        Domain::global().collect();
    }));
    let mut burst = packets(&[0], rng.usize(1..40));
    let result = pipeline.site().caller().run_burst(1, &mut burst, &mut host);
    result.map_err(|fault| fault.fault.to_string())
}
