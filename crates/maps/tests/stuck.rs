//! A worker that stays in its burst. Alone in their process, whose other tests would feel it, and one after the other.

mod common;

use paceline_epoch::{Domain, Limit};
use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use common::spec;

static STUCK: Mutex<()> = Mutex::new(());

const UPDATES: usize = 50_000;

/// It keeps what others replace from being used again. They go on for as long as there is room, and then are told at once; when it is
/// done, all of the room is there again.
#[test]
fn a_worker_that_is_stuck_in_its_burst_stops_no_other() {
    let _turn = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    let key = |number: u32| (number % 1000).to_ne_bytes();
    for kind in [MapKind::Hash, MapKind::LruHash] {
        let limits = Limits { cpus: 2, memory: 1 << 30 };
        let map = Map::create(&spec(kind, 4, 64, 1000, MapFlags::default()), &limits).unwrap();
        let mut stuck = Domain::global().reader();
        let mut update_until_refused = || {
            let burst = stuck.pin();
            let results = (0..).map(|number| map.for_programs().update(&key(number), &[1; 64], 0, 0));
            let updates = results.take_while(|result| *result != Err(Errno::ENOMEM)).count();
            drop(burst);
            updates
        };
        let first = update_until_refused();
        assert!(first > UPDATES, "{kind}: {first}");
        let second = update_until_refused();
        assert!(second > UPDATES, "{kind}: {second} after {first}");
    }
}

fn route(length: u32, address: u32) -> Vec<u8> {
    [length.to_ne_bytes(), address.to_be_bytes()].concat()
}

/// Nodes of the trie wait for the worker until no route can be added. What is there can be removed all the same, and when the
/// worker goes on, routes of another shape find room.
#[test]
fn routes_can_be_removed_while_a_worker_is_stuck() {
    let _turn = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { cpus: 1, memory: 1 << 28 };
    let map = Map::create(&spec(MapKind::LpmTrie, 8, 8, 1000, MapFlags::NO_PREALLOC), &limits).unwrap();
    let dense = || (0..100).map(|number| route(24, 10 << 24 | (2 * number) << 8));
    dense().for_each(|key| map.insert(&key, &[1; 8]).unwrap());
    let mut stuck = Domain::global().reader();
    let burst = stuck.pin();
    let sparse = |number: u32| route(32, number << 16 | 0x0101);
    let added = (0..10_000).take_while(|&number| {
        let added = map.for_programs().update(&sparse(number), &[1; 8], 0, 0);
        assert!(matches!(added, Ok(()) | Err(Errno::ENOMEM)), "{added:?}");
        added.is_ok() && map.for_programs().delete(&sparse(number)).is_ok()
    });
    assert!(added.count() > 500);
    assert_eq!(map.for_programs().update(&sparse(1), &[1; 8], 0, 0), Err(Errno::ENOMEM));
    dense().for_each(|key| map.delete(&key).unwrap());
    assert_eq!(map.keys().unwrap().count(), 0);
    assert!(dense().all(|key| map.lookup(&key).is_err()));
    // Nor do programs find them.
    assert!(
        (0..100)
            .all(|number| map.for_programs().lookup(&route(32, 10 << 24 | (2 * number) << 8), 0).is_none())
    );
    drop(burst);
    for _ in 0..3 {
        dense().for_each(|key| map.insert(&key, &[1; 8]).unwrap());
        dense().for_each(|key| map.delete(&key).unwrap());
    }
}

/// Inner maps that were replaced wait for the worker: a limit bounds them, and the backlog tells.
#[test]
fn maps_are_replaced_up_to_a_limit() {
    let _turn = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { cpus: 1, memory: 1 << 28 };
    let inner = spec(MapKind::Array, 4, 8, 1000, MapFlags::default());
    let outer = MapSpec {
        inner: Some(Box::new(inner.clone())),
        ..spec(MapKind::ArrayOfMaps, 4, 4, 1, MapFlags::default())
    };
    let outer = Map::create(&outer, &limits).unwrap();
    let replace = || {
        let map = Map::create(&inner, &limits).unwrap();
        outer.insert(&[0; 4], &map.id().to_ne_bytes())
    };
    let domain = Domain::global();
    domain.set_limit(Limit { objects: 100, bytes: 1 << 30 });
    let mut stuck = domain.reader();
    let burst = stuck.pin();
    assert!((0..1000).map(|_| replace()).take_while(Result::is_ok).count() >= 90);
    assert_eq!(replace(), Err(Errno::ENOMEM));
    let backlog = domain.backlog();
    assert_eq!(backlog.objects, 100);
    assert!(backlog.bytes >= 90 * 1000 * 8 && backlog.holder.is_some() && backlog.age.is_some(), "{backlog}");
    drop(burst);
    replace().unwrap();
    assert!(domain.backlog().objects < 100);
    domain.set_limit(Limit::default());
}

/// Slots that wait for the worker do not make it long to find an element that can go.
#[test]
fn a_small_lru_table_stays_fast_while_a_worker_is_stuck() {
    let _turn = STUCK.lock().unwrap_or_else(PoisonError::into_inner);
    let limits = Limits { cpus: 2, memory: 1 << 30 };
    let map = Map::create(&spec(MapKind::LruHash, 8, 8, 16, MapFlags::default()), &limits).unwrap();
    let mut number = 0_u64;
    // As many as there is room for; the mean time that one takes.
    let mut insert = |most: u32| {
        let (start, before) = (Instant::now(), number);
        for _ in 0..most {
            number += 1;
            if map.for_programs().update(&number.to_ne_bytes(), &[1; 8], 0, 0).is_err() {
                break;
            }
        }
        start.elapsed() / (number - before) as u32
    };
    insert(10_000);
    let before = insert(100_000);
    let mut stuck = Domain::global().reader();
    let burst = stuck.pin();
    let during = insert(u32::MAX);
    drop(burst);
    assert!(during < 8 * before, "{during:?} an insertion, {before:?} before");
}
