//! CPUs of per-CPU maps: one host has each, so that no count of another thread is lost.

mod common;

use std::sync::Arc;
use std::thread;

use paceline_engine::{BurstFault, Chain, Engine, FaultKind, Host, KeyedSite, Program, Target};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_maps::{Limits, Map};
use paceline_spec::graph::Graph;
use paceline_spec::{MapKind, MapSpec};

use common::verified;

/// Counts packets in a per-CPU array.
const COUNTS: &str = "
    *(u32 *)(r10 - 4) = 0
    r1 = map[0] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = *(u64 *)(r0 + 0)
    r1 += 1
    *(u64 *)(r0 + 0) = r1
out:
    r0 = 2
    exit
";

const KINDS: [MapKind; 3] = [MapKind::PerCpuArray, MapKind::PerCpuHash, MapKind::LruPerCpuHash];

fn engines() -> impl Iterator<Item = Engine> {
    Engine::ALL.into_iter().filter(|engine| engine.is_available())
}

fn map(kind: MapKind, cpus: usize) -> Arc<Map> {
    let spec = MapSpec::new("counts", kind, 4, 8, 64);
    let map = Map::create(&spec, &Limits { cpus, memory: 1 << 20 }).expect("is made");
    map.insert(&[0; 4], &vec![0; 8 * cpus]).expect("fits");
    map
}

fn burst(packets: usize) -> Burst {
    let mut burst = Burst::default();
    (0..packets).for_each(|_| burst.push(&[0; 60], FrameMeta::default()).expect("there is room"));
    burst
}

fn program(map: &Arc<Map>, engine: Engine) -> Program {
    let verified = verified(COUNTS, std::slice::from_ref(map.spec()));
    Program::load(&verified, vec![Arc::clone(map)], engine).expect("loads")
}

/// One way to run a burst.
type Way = Box<dyn Fn(&mut Burst, &mut Host) -> Result<(), BurstFault>>;

/// All ways to run it.
fn ways(map: &Arc<Map>, engine: Engine) -> Vec<Way> {
    let (alone, target) = (program(map, engine), Target::from(&program(map, engine)));
    let verified = verified(COUNTS, std::slice::from_ref(map.spec()));
    let parts = [(&verified, vec![Arc::clone(map)])];
    let chain = Chain::load(&parts, Graph::one(), engine).expect("loads");
    let called = Chain::new(vec![program(map, engine)], Graph::one()).expect("is a chain");
    let (one, site) = (alone.clone(), KeyedSite::by_key());
    site.set(1, Some(&target)).expect("is set");
    vec![
        Box::new(move |burst, host| alone.run_burst(burst, host)),
        Box::new(move |burst, host| {
            one.run(&mut burst.frame_mut(0), host).map_err(|fault| BurstFault::at(burst, 0, fault))?;
            Ok(())
        }),
        Box::new(move |burst, host| target.run_burst(burst, host)),
        Box::new(move |burst, host| chain.run_burst(burst, host)),
        Box::new(move |burst, host| called.run_burst(burst, host)),
        Box::new(move |burst, host| site.caller().run_burst(1, burst, host)),
    ]
}

fn total(map: &Map) -> u64 {
    let values = map.lookup(&[0; 4]).expect("is there");
    values.chunks(8).map(|value| u64::from_ne_bytes(value.try_into().expect("8 bytes"))).sum()
}

#[test]
fn threads_with_default_hosts_lose_no_count() {
    const BURSTS: usize = 400;
    for kind in KINDS {
        for engine in engines() {
            let map = map(kind, 3);
            let program = program(&map, engine);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let (mut burst, mut host) = (burst(64), Host::default());
                        for _ in 0..BURSTS {
                            program.run_burst(&mut burst, &mut host).expect("a CPU is free");
                        }
                    });
                }
            });
            assert_eq!(total(&map), 3 * 64 * BURSTS as u64, "{kind} on {engine}");
        }
    }
}

#[test]
fn a_number_belongs_to_one_host() {
    for kind in KINDS {
        for engine in engines() {
            let map = map(kind, 2);
            for run in ways(&map, engine) {
                let fault = |host: &mut Host| {
                    let mut burst = burst(2);
                    let fault = run(&mut burst, host).err().map(|fault| fault.fault.kind);
                    let aborted = burst.iter().filter(|frame| frame.verdict() == Verdict::Aborted).count();
                    assert!(fault.is_none() || aborted == 2);
                    fault
                };
                let (mut first, mut second) = (Host::default(), Host::new(0));
                assert_eq!(fault(&mut first), None, "{kind} on {engine}");
                assert_eq!(fault(&mut second), Some(FaultKind::CpuInUse(0)), "{kind} on {engine}");
                second.set_cpu(1);
                assert_eq!(fault(&mut second), None, "{kind} on {engine}");
                let mut lent = Host::default();
                assert_eq!(fault(&mut lent), Some(FaultKind::NoFreeCpu(2)), "{kind} on {engine}");
                drop(second);
                assert_eq!(fault(&mut lent), None, "{kind} on {engine}");
                assert_eq!(lent.cpu(), 1);
                first.set_cpu(2);
                assert_eq!(fault(&mut first), Some(FaultKind::NoCpu(2)), "{kind} on {engine}");
                // Its old number is free; hosts with a number that was chosen have it alone too.
                let mut chosen = Host::new(0);
                assert_eq!(fault(&mut chosen), None, "{kind} on {engine}");
                assert_eq!(fault(&mut Host::new(0)), Some(FaultKind::CpuInUse(0)), "{kind} on {engine}");
                chosen.give_back_cpu();
                let mut third = Host::new(0);
                assert_eq!(fault(&mut third), None, "{kind} on {engine}");
                assert_eq!(fault(&mut chosen), Some(FaultKind::CpuInUse(0)), "{kind} on {engine}");
                drop(third);
                assert_eq!(fault(&mut chosen), None, "{kind} on {engine}");
            }
        }
    }
}

#[test]
fn a_default_host_finds_a_number_that_is_free_in_all_maps() {
    let (one, other) = (map(MapKind::PerCpuArray, 3), map(MapKind::PerCpuArray, 3));
    let (one, other) = (program(&one, Engine::Plain), program(&other, Engine::Plain));
    let (mut fixed, mut lent) = (Host::new(0), Host::default());
    other.run_burst(&mut burst(1), &mut fixed).expect("it is free");
    one.run_burst(&mut burst(1), &mut lent).expect("it is free");
    assert_eq!(lent.cpu(), 0);
    other.run_burst(&mut burst(1), &mut lent).expect("another is free");
    assert_eq!(lent.cpu(), 1);
    // It has left the first number there too.
    one.run_burst(&mut burst(1), &mut fixed).expect("it is free");
    assert_eq!((fixed.cpu(), lent.cpu()), (0, 1));
}
