//! Longest-prefix maps against a list that is searched from end to end.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, MapFlags, MapKind};

use crate::common::spec;

const OPERATIONS: usize = 6000;

fn create(data_size: usize, max_entries: u32) -> Arc<Map> {
    let spec = spec(MapKind::LpmTrie, 4 + data_size as u32, 4, max_entries, MapFlags::NO_PREALLOC);
    Map::create(&spec, &Limits { cpus: 2, memory: 1 << 30 }).unwrap()
}

fn key(length: u32, data: &[u8]) -> Vec<u8> {
    [&length.to_ne_bytes()[..], data].concat()
}

fn read(value: NonNull<u8>) -> [u8; 4] {
    // SAFETY: a value of four bytes in a map that lives, which no other thread writes.
    unsafe { value.cast::<[u8; 4]>().read() }
}

/// Whether the first bits are the same.
fn same_prefix(length: u32, a: &[u8], b: &[u8]) -> bool {
    (0..length as usize).all(|bit| (a[bit / 8] ^ b[bit / 8]) >> (7 - bit % 8) & 1 == 0)
}

struct Route {
    length: u32,
    data: Vec<u8>,
    value: [u8; 4],
}

#[test]
fn the_longest_prefix_wins() {
    for data_size in [1, 3, 4, 16, 33] {
        let map = create(data_size, 300);
        let mut routes: Vec<Route> = Vec::new();
        let mut rng = fastrand::Rng::with_seed(data_size as u64);
        let bits = 8 * data_size as u32;
        for _ in 0..OPERATIONS {
            let data: Vec<u8> = (0..data_size).map(|_| [0, 0x80, 0xc0, 0xff, 1][rng.usize(..5)]).collect();
            let length = rng.u32(..=bits);
            let position =
                routes.iter().position(|r| r.length == length && same_prefix(length, &r.data, &data));
            match rng.u32(..8) {
                0..2 => {
                    let value = rng.u32(..).to_ne_bytes();
                    let expected =
                        if position.is_none() && routes.len() == 300 { Err(Errno::ENOSPC) } else { Ok(()) };
                    assert_eq!(map.for_programs().update(&key(length, &data), &value, 0, 0), expected);
                    if expected.is_ok() {
                        position.map(|p| routes.swap_remove(p));
                        routes.push(Route { length, data, value });
                    }
                }
                2 => {
                    let expected = position.map(|p| drop(routes.swap_remove(p))).ok_or(Errno::ENOENT);
                    assert_eq!(map.for_programs().delete(&key(length, &data)), expected);
                }
                _ => {
                    let of = |r: &&Route| r.length <= length && same_prefix(r.length, &r.data, &data);
                    let expected = routes.iter().filter(of).max_by_key(|r| r.length).map(|r| r.value);
                    assert_eq!(
                        map.for_programs().lookup(&key(length, &data), 0).map(read),
                        expected,
                        "/{length} {data:?}"
                    );
                    assert_eq!(map.lookup(&key(length, &data)).ok(), expected.map(|v| v.to_vec()));
                }
            }
        }
        // Keys come back as they were given, bits beyond the prefix and all.
        let mut keys: Vec<_> = map.keys().unwrap().collect();
        let mut expected: Vec<_> = routes.iter().map(|r| key(r.length, &r.data)).collect();
        keys.sort();
        expected.sort();
        assert_eq!(keys, expected);
    }
}

#[test]
fn values_are_all_that_programs_may_touch() {
    let map = create(4, 10);
    map.for_programs().update(&key(8, &[10, 0, 0, 0]), &[1, 2, 3, 4], 0, 0).unwrap();
    let value = map.for_programs().lookup(&key(32, &[10, 1, 2, 3]), 0).unwrap().addr().get();
    assert!(map.for_programs().contains(value, 4));
    assert!(
        !map.for_programs().contains(value, 5)
            && !map.for_programs().contains(value - 1, 1)
            && !map.for_programs().contains(value + 8, 1)
    );
}

#[test]
fn the_default_route_is_always_there() {
    let map = create(4, 1000);
    map.for_programs().update(&key(0, &[0; 4]), &[9; 4], 0, 0).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (map, stop) = (&map, &stop);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                while !stop.load(Ordering::Relaxed) {
                    let prefix = key(rng.u32(1..=32), &[rng.u8(..4), 0, 0, 0]);
                    let _ = if rng.bool() {
                        map.for_programs().update(&prefix, &[1; 4], 0, 0)
                    } else {
                        map.for_programs().delete(&prefix)
                    };
                    assert!(map.for_programs().lookup(&key(32, &[rng.u8(..4), 0, 0, 0]), 0).is_some());
                    assert_eq!(map.lookup(&key(32, &[200, 0, 0, 0])), Ok(vec![9; 4]));
                }
            });
        }
        thread::sleep(Duration::from_millis(400));
        stop.store(true, Ordering::Relaxed);
    });
    // Lengths are still counted right: with every prefix gone but one, only that one is found.
    map.keys().unwrap().filter(|k| k[..4] != [0; 4]).for_each(|k| map.delete(&k).unwrap());
    assert_eq!(map.lookup(&key(32, &[1, 0, 0, 0])), Ok(vec![9; 4]));
    map.delete(&key(0, &[7; 4])).unwrap();
    assert_eq!(map.lookup(&key(32, &[1, 0, 0, 0])), Err(Errno::ENOENT));
}

/// A worker that found it would see the slot's next prefix in the middle of its burst.
#[test]
fn a_prefix_that_finds_the_map_full_is_never_found() {
    const REFUSALS: u32 = 50_000;
    let map = create(4, 1);
    let address = key(32, &[10, 0, 0, 1]);
    map.for_programs().update(&key(24, &[192, 0, 2, 0]), &[1; 4], 0, 0).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut found = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                found += u64::from(map.for_programs().lookup(&address, 0).is_some());
            }
            found
        });
        for number in 0..REFUSALS {
            // As a route of its own, and below shorter ones.
            let refused = map.for_programs().update(&key(8 + number % 25, &[10, 0, 0, 1]), &[2; 4], 0, 0);
            assert_eq!(refused, Err(Errno::ENOSPC));
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(worker.join().unwrap(), 0);
    });
}
