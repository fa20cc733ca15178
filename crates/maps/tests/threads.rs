//! Several threads on one map. Each test runs for a bounded time and checks what must hold at every moment.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use paceline_btf::{SpecialField, SpecialKind};
use paceline_maps::{Limits, Map, UpdateMode};
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use common::spec;

const TIME: Duration = Duration::from_millis(400);
const LIMITS: Limits = Limits { cpus: 2, memory: 1 << 30 };

fn create(kind: MapKind, value_size: u32, max_entries: u32) -> Arc<Map> {
    let spec = spec(kind, 4, value_size, max_entries, MapFlags::default());
    Map::create(&spec, &LIMITS).unwrap()
}

/// Runs a step of each worker again and again until the time is over.
fn hammer(workers: &[&(dyn Fn(&mut fastrand::Rng) + Sync)]) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (seed, worker) in workers.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed as u64);
                while !stop.load(Ordering::Relaxed) {
                    worker(&mut rng);
                }
            });
        }
        thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_value_under_its_lock_is_never_half_an_update() {
    const LOCK: u64 = 4;
    for kind in [MapKind::Array, MapKind::Hash] {
        let special = Box::new([SpecialField { kind: SpecialKind::SpinLock, offset: 0, size: 4 }]);
        let spec = MapSpec { special, ..spec(kind, 4, 256, 1, MapFlags::default()) };
        let map = Map::create(&spec, &LIMITS).unwrap();
        map.insert(&[0; 4], &[0; 256]).unwrap();
        let reads = AtomicU64::new(0);
        let write = |rng: &mut fastrand::Rng| {
            map.for_programs().update(&[0; 4], &[rng.u8(..); 256], LOCK, 0).unwrap()
        };
        let read = |_: &mut fastrand::Rng| {
            let value = map.lookup_locked(&[0; 4]).unwrap();
            assert!(value[4..].iter().all(|byte| *byte == value[4]), "torn: {value:?}");
            reads.fetch_add(1, Ordering::Relaxed);
        };
        hammer(&[&write, &read]);
        assert!(reads.into_inner() > 0);
    }
}

#[test]
fn a_hash_value_is_never_half_an_update() {
    let map = create(MapKind::Hash, 64, 8);
    let key = |rng: &mut fastrand::Rng| rng.u32(..8).to_ne_bytes();
    let reads = AtomicU64::new(0);
    let write = |rng: &mut fastrand::Rng| {
        let _ = map.for_programs().update(&key(rng), &[rng.u8(..); 64], 0, 0);
    };
    let delete = |rng: &mut fastrand::Rng| {
        write(rng);
        let _ = map.for_programs().delete(&key(rng));
    };
    let read = |rng: &mut fastrand::Rng| {
        if let Ok(value) = map.lookup(&key(rng)) {
            assert!(value.iter().all(|byte| *byte == value[0]), "torn: {value:?}");
            reads.fetch_add(1, Ordering::Relaxed);
        }
    };
    hammer(&[&write, &delete, &read, &read]);
    assert!(reads.into_inner() > 0);
}

#[test]
fn a_full_table_never_holds_more_than_it_may_and_loses_no_slot() {
    for kind in [MapKind::Hash, MapKind::PerCpuHash, MapKind::DevMapHash] {
        let map = create(kind, 8, 50);
        let mut value = vec![1; map.user_value_size()];
        if kind == MapKind::DevMapHash {
            value[4..].fill(0); // an interface without a program
        }
        let live = AtomicU64::new(0);
        let step = |rng: &mut fastrand::Rng| {
            let key = rng.u32(..80).to_ne_bytes();
            if rng.bool() {
                match map.update_with(&key, &value, UpdateMode::NoExist) {
                    Ok(()) => drop(live.fetch_add(1, Ordering::SeqCst)),
                    Err(errno) => assert!(matches!(errno, Errno::EEXIST | Errno::E2BIG), "{errno}"),
                }
            } else if map.delete(&key).is_ok() {
                live.fetch_sub(1, Ordering::SeqCst);
            }
        };
        hammer(&[&step, &step]);
        assert_eq!(map.keys().unwrap().count() as u64, live.into_inner(), "{kind}");
        // Every slot is still there: the table can be filled to the last entry and no further.
        let free = (0..80_u32).filter(|key| map.lookup(&key.to_ne_bytes()).is_err()).collect::<Vec<_>>();
        let filled = free
            .iter()
            .filter(|key| map.update_with(&key.to_ne_bytes(), &value, UpdateMode::NoExist).is_ok())
            .count();
        assert_eq!(map.keys().unwrap().count(), 50, "{kind}");
        assert!(filled < free.len());
    }
}

#[test]
fn each_cpu_counts_alone() {
    let map = create(MapKind::PerCpuArray, 8, 4);
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let count = |cpu: usize| {
        let (map, counts) = (&map, &counts);
        move |rng: &mut fastrand::Rng| {
            let address = map.for_programs().lookup(&rng.u32(..4).to_ne_bytes(), cpu).unwrap().cast::<u64>();
            // SAFETY: an aligned value of 8 bytes that only this thread writes; others read it as an atomic.
            let value = unsafe { AtomicU64::from_ptr(address.as_ptr()) };
            value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            counts[cpu].fetch_add(1, Ordering::Relaxed);
        }
    };
    let last = AtomicU64::new(0);
    let watch = |_: &mut fastrand::Rng| {
        let value = map.lookup(&[0; 4]).unwrap();
        let now = u64::from_ne_bytes(value[..8].try_into().unwrap());
        assert!(last.swap(now, Ordering::Relaxed) <= now, "a counter went back");
    };
    hammer(&[&count(0), &count(1), &watch]);
    let mut sums = [0; 2];
    for index in 0..4_u32 {
        let value = map.lookup(&index.to_ne_bytes()).unwrap();
        for (sum, bytes) in sums.iter_mut().zip(value.chunks_exact(8)) {
            *sum += u64::from_ne_bytes(bytes.try_into().unwrap());
        }
    }
    assert_eq!(sums, counts.map(AtomicU64::into_inner));
}

#[test]
fn iteration_sees_every_key_that_stays() {
    let map = create(MapKind::Hash, 8, 4000);
    (0..1000_u32).for_each(|key| map.insert(&key.to_ne_bytes(), &[0; 8]).unwrap());
    let churn = |rng: &mut fastrand::Rng| {
        let key = rng.u32(1000..6000).to_ne_bytes();
        let _ = if rng.bool() { map.insert(&key, &[1; 8]) } else { map.delete(&key) };
        // Those that stay are replaced, too.
        let _ = map.update_with(&rng.u32(..1000).to_ne_bytes(), &[2; 8], UpdateMode::Exist);
    };
    let iterate = |_: &mut fastrand::Rng| {
        let mut seen = vec![0; 6000];
        map.keys().unwrap().for_each(|key| seen[u32::from_ne_bytes(key.try_into().unwrap()) as usize] += 1);
        assert!(seen[..1000].iter().all(|&times| times == 1));
    };
    hammer(&[&churn, &iterate]);
}

#[test]
fn a_tail_call_sees_a_token_of_its_program_only() {
    let map = create(MapKind::ProgArray, 4, 1);
    let table = map.for_programs().prog_array().unwrap();
    let program_of = |token: u64| (token >> 1) as u32;
    let change = |rng: &mut fastrand::Rng| {
        let program = rng.u32(..3);
        let token = (u64::from(program) << 1 | 1).try_into().unwrap();
        // SAFETY: nobody jumps to these tokens.
        unsafe { map.for_programs().install_program(0, program, token, Box::new(())) }.unwrap();
        if rng.bool() {
            map.insert(&[0; 4], &program.to_ne_bytes()).unwrap();
        }
    };
    let call = |_: &mut fastrand::Rng| {
        if let Some(token) = table.token(0) {
            assert!(program_of(token.get()) < 3);
        }
    };
    hammer(&[&change, &call]);
    map.delete(&[0; 4]).unwrap();
    assert_eq!((table.program(0), table.token(0)), (None, None));
}
