//! Promises of the LRU kinds: an insertion always finds room, no more elements than allowed are there, and elements
//! that programs keep using are not the ones that go.

use std::sync::Arc;
use std::thread;

use paceline_maps::{Limits, Map};
use paceline_spec::{MapFlags, MapKind};

use crate::common::spec;

const KINDS: [MapKind; 2] = [MapKind::LruHash, MapKind::LruPerCpuHash];

fn create(kind: MapKind, max_entries: u32) -> Arc<Map> {
    let spec = spec(kind, 4, 8, max_entries, MapFlags::default());
    Map::create(&spec, &Limits { cpus: 2, memory: 1 << 30 }).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_ne_bytes()
}

fn count(map: &Map) -> usize {
    map.keys().unwrap().count()
}

#[test]
fn there_is_always_room() {
    for (kind, entries) in KINDS.iter().flat_map(|&kind| [1, 2, 63, 64, 300].map(|entries| (kind, entries))) {
        let map = create(kind, entries);
        for number in 0..5 * entries {
            map.for_programs().update(&key(number), &number.to_ne_bytes().repeat(2), 1, 0).unwrap();
            if number % 7 == 0 || entries < 100 {
                assert_eq!(count(&map), entries.min(number + 1) as usize, "{kind}: room is made for one");
            }
            assert!(map.for_programs().lookup(&key(number), 0).is_some(), "{kind}: the new element is there");
        }
    }
}

#[test]
fn when_all_are_in_use_one_goes_all_the_same() {
    for kind in KINDS {
        let map = create(kind, 5000);
        (0..5000).for_each(|number| map.for_programs().update(&key(number), &[0; 8], 0, 0).unwrap());
        (0..5000).for_each(|number| assert!(map.for_programs().lookup(&key(number), 0).is_some()));
        map.for_programs().update(&key(9999), &[0; 8], 0, 0).unwrap();
        assert_eq!(count(&map), 5000);
    }
}

#[test]
fn what_programs_use_stays_and_what_user_space_reads_does_not() {
    for kind in KINDS {
        let map = create(kind, 100);
        let value = vec![0; map.user_value_size()];
        (0..100).for_each(|number| map.insert(&key(number), &value).unwrap());
        for number in 1000..2000 {
            (0..20).for_each(|hot| {
                assert!(map.for_programs().lookup(&key(hot), 0).is_some(), "{kind} lost {hot} at {number}")
            });
            (20..40).for_each(|read| drop(map.lookup(&key(read))));
            map.for_programs().update(&key(number), &[1; 8], 0, 0).unwrap();
        }
        assert!((20..40).all(|read| map.lookup(&key(read)).is_err()), "{kind}");
    }
}

#[test]
fn an_update_is_a_use() {
    for kind in KINDS {
        let map = create(kind, 50);
        for number in 0..1000 {
            map.for_programs().update(&key(5), &[2; 8], 0, 0).unwrap();
            map.for_programs().update(&key(1000 + number), &[1; 8], 0, 0).unwrap();
            assert!(map.lookup(&key(5)).is_ok(), "{kind} at {number}");
        }
    }
}

#[test]
fn two_workers_fill_it_at_once() {
    for kind in KINDS {
        let map = create(kind, 64);
        thread::scope(|scope| {
            for cpu in 0..2_usize {
                let map = &map;
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(cpu as u64);
                    for _ in 0..20_000 {
                        let number = rng.u32(..512);
                        if map.for_programs().lookup(&key(number), cpu).is_none() {
                            map.for_programs()
                                .update(&key(number), &u64::from(number).to_ne_bytes(), 0, cpu)
                                .unwrap();
                        }
                        if rng.u8(..) == 0 {
                            let _ = map.for_programs().delete(&key(rng.u32(..512)));
                        }
                    }
                });
            }
        });
        let keys: Vec<_> = map.keys().unwrap().collect();
        assert!(keys.len() <= 64, "{kind}: {} elements", keys.len());
        // No slot was lost.
        (1000..1064).for_each(|number| map.for_programs().update(&key(number), &[0; 8], 1, 0).unwrap());
        assert_eq!(count(&map), 64, "{kind}");
    }
}
