//! Timers: started on hosts of all CPUs, in maps and inner maps, fired, cancelled, dropped.

use fastrand::Rng;
use paceline::FaultKind;

use super::finding::Finding;
use super::loaded::Loaded;
use super::op::{Op, op};
use super::programs::{of, replace_inner};
use super::world::{World, packets};

pub(super) const OPS: &[Op] = &[
    op("arm", 6, |world, rng| arm(world, rng, "arm")),
    op("start", 4, |world, rng| arm(world, rng, "start")),
    op("arm inner", 3, |world, rng| arm(world, rng, "arm_inner")),
    op("put inner", 2, replace_inner),
    op("fire", 6, fire),
    op("drop timers", 1, |world, rng| {
        let index = of(world, rng, "timers")?;
        drop(world.loaded.remove(index));
        Ok(())
    }),
];

fn arm(world: &mut World, rng: &mut Rng, name: &str) -> Finding {
    let index = of(world, rng, "timers")?;
    let host = world.host(rng);
    let program = match world.loaded[index].program(name) {
        Ok(program) => program,
        // The change of its maps made it refused.
        Err(_) => return Ok(()),
    };
    for _ in 0..rng.u32(1..4) {
        let mut burst = packets(&[rng.u8(..)], rng.usize(1..4));
        match program.run_burst(&mut burst, &mut world.hosts[host]) {
            Err(error) if !matches!(error.fault.kind, FaultKind::NoCpu(_) | FaultKind::CpuInUse(_)) => {
                return Err(format!("a proven program faults: {}", error.fault));
            }
            _ => {}
        }
    }
    Ok(())
}

fn fire(world: &mut World, rng: &mut Rng) -> Finding {
    if world.hosts.is_empty() {
        arm(world, rng, "arm")?;
    }
    let cpus = world.hosts.iter_mut().map(|host| (host.cpu(), host.fire_timers()));
    for (cpu, fired) in cpus.collect::<Vec<_>>() {
        match fired {
            Err(fault) if matches!(fault.kind, FaultKind::CpuInUse(_)) => {}
            Err(fault) if !(matches!(fault.kind, FaultKind::NoCpu(_)) && cpu > 0) => {
                return Err(format!("the function of a timer faults: {fault}"));
            }
            _ => {}
        }
    }
    let fired = |loaded: &Loaded| loaded.source != "timers" || loaded.map("fired").is_ok();
    if world.loaded.iter().all(fired) { Ok(()) } else { Err("a map is gone".to_owned()) }
}
