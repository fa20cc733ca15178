//! Two workers, pinned for a burst at a time as programs run, and user space beside them, on the same maps: what a look-up found
//! is the key's own as long as the burst lasts, whoever replaces or deletes it, and memory stays flat.
//! `PACELINE_HAMMER=600 cargo test --release -p paceline-maps --test hammer` does it for ten minutes.

mod common;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use paceline_btf::{SpecialField, SpecialKind};
use paceline_epoch::Domain;
use paceline_maps::{Limits, Map, MapUser, TimerQueue, make_timer, timer_at};
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use common::spec;

const KEYS: u32 = 96;
const WORDS: usize = 4;
const LIMITS: Limits = Limits { cpus: 2, memory: 1 << 30 };

fn time() -> Duration {
    let given = std::env::var("PACELINE_HAMMER").ok();
    Duration::from_secs(given.map_or(2, |given| given.parse().expect("seconds")))
}

/// A value of a key and a version: each word says both.
fn value(key: u32, version: u32) -> [u8; WORDS * 8] {
    let word = (u64::from(key) << 32 | u64::from(version)).to_ne_bytes();
    std::array::from_fn(|i| word[i % 8])
}

/// The words at an address that a look-up gave.
fn words(found: NonNull<u8>) -> [u64; WORDS] {
    // SAFETY: a value of as many words, aligned, in a map that lives; all that writes it writes atomic words.
    std::array::from_fn(|i| unsafe { AtomicU64::from_ptr(found.cast::<u64>().add(i).as_ptr()) }.load(Relaxed))
}

struct Subject {
    map: Arc<Map>,
    /// The key of a number; several numbers may have the same longest prefix, whose number is the second.
    key: fn(u32) -> (Vec<u8>, u32),
    /// Whether values are replaced whole.
    whole: bool,
}

fn number_key(number: u32) -> (Vec<u8>, u32) {
    (number.to_ne_bytes().to_vec(), number)
}

fn long_key(number: u32) -> (Vec<u8>, u32) {
    ([number.to_ne_bytes(); 4].concat(), number)
}

/// Addresses of 32 bits: no prefix covers another.
fn route_key(number: u32) -> (Vec<u8>, u32) {
    ([32_u32.to_ne_bytes(), (0x0a00_0000 | (number * 77)).to_be_bytes()].concat(), number)
}

fn subjects() -> Vec<Subject> {
    let map = |kind, key_size, flags| {
        Map::create(&spec(kind, key_size, WORDS as u32 * 8, 64, flags), &LIMITS).unwrap()
    };
    let none = MapFlags::default();
    vec![
        Subject { map: map(MapKind::Hash, 4, none), key: number_key, whole: true },
        Subject { map: map(MapKind::Hash, 16, MapFlags::NO_PREALLOC), key: long_key, whole: true },
        Subject { map: map(MapKind::LruHash, 4, none), key: number_key, whole: true },
        Subject { map: map(MapKind::LruPerCpuHash, 16, none), key: long_key, whole: false },
        Subject { map: map(MapKind::PerCpuHash, 4, none), key: number_key, whole: false },
        Subject { map: map(MapKind::LpmTrie, 8, MapFlags::NO_PREALLOC), key: route_key, whole: true },
    ]
}

/// One burst: look-ups whose results are looked at again at its end, updates and deletes between them.
fn burst(subjects: &[Subject], cpu: usize, rng: &mut fastrand::Rng) {
    let mut found = Vec::new();
    for _ in 0..64 {
        let subject = &subjects[rng.usize(..subjects.len())];
        let (key, number) = (subject.key)(rng.u32(..KEYS));
        match rng.u32(..8) {
            0..4 => {
                if let Some(address) = subject.map.for_programs().lookup(&key, cpu) {
                    let seen = words(address);
                    check(subject, number, seen);
                    found.push((subject, number, address, seen));
                }
                if let Some(function) = subject.map.for_programs().lookup_function() {
                    // SAFETY: the map lives, and the key has its size.
                    let again =
                        unsafe { (function.function)(function.context, key.as_ptr() as u64, cpu as u64) };
                    let by_word = function.by_word.map(|by_word| {
                        let mut word = [0; 8];
                        word[..key.len()].copy_from_slice(&key);
                        // SAFETY: the map lives.
                        unsafe { by_word(function.context, u64::from_ne_bytes(word), cpu as u64) }
                    });
                    for address in [Some(again), by_word].into_iter().flatten() {
                        if let Some(address) = NonNull::new(address as *mut u8) {
                            check(subject, number, words(address));
                        }
                    }
                }
            }
            4..7 => match subject.map.for_programs().update(&key, &value(number, rng.u32(..)), 0, cpu) {
                Ok(()) | Err(Errno::E2BIG | Errno::ENOSPC) => {}
                // All spare slots are where another worker may see them: it lost its core in its burst.
                Err(Errno::ENOMEM) => {}
                Err(errno) => panic!("{} {errno}", subject.map.spec().kind),
            },
            _ => drop(subject.map.for_programs().delete(&key)),
        }
    }
    for (subject, number, address, seen) in found {
        let now = words(address);
        check(subject, number, now);
        if subject.whole {
            assert_eq!(now, seen, "{}: reused in the burst", subject.map.spec().kind);
        }
    }
}

fn check(subject: &Subject, number: u32, words: [u64; WORDS]) {
    let kind = subject.map.spec().kind;
    // New elements of per-CPU kinds are zero on other CPUs.
    if !subject.whole && words.contains(&0) {
        return;
    }
    assert!(words.iter().all(|word| (word >> 32) as u32 == number), "{kind}: {words:x?} under {number}");
    assert!(
        !subject.whole || words.iter().all(|word| *word == words[0]),
        "{kind}: half an update {words:x?}"
    );
}

/// Work of user space: whole values, and all keys.
fn user(subjects: &[Subject], rng: &mut fastrand::Rng) {
    let subject = &subjects[rng.usize(..subjects.len())];
    let (key, number) = (subject.key)(rng.u32(..KEYS));
    if let Ok(bytes) = subject.map.lookup(&key) {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        check(subject, number, words);
    }
    if rng.u32(..64) == 0 {
        let keys: Vec<_> = subject.map.keys().unwrap().collect();
        // An element that moves to another place in between is met twice; there are never more than twice as many.
        assert!(keys.len() <= 128, "{}", keys.len());
    }
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn two_workers_on_the_same_maps() {
    let subjects = subjects();
    let stop = AtomicBool::new(false);
    let bursts = AtomicU64::new(0);
    let (early, late) = thread::scope(|scope| {
        for cpu in 0..2_usize {
            let (subjects, stop, bursts) = (&subjects, &stop, &bursts);
            scope.spawn(move || {
                let mut reader = Domain::global().reader();
                let mut rng = fastrand::Rng::with_seed(cpu as u64);
                while !stop.load(Relaxed) {
                    let _burst = reader.pin();
                    burst(subjects, cpu, &mut rng);
                    bursts.fetch_add(1, Relaxed);
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(2);
        let start = Instant::now();
        let mut early = None;
        while start.elapsed() < time() && !stop.load(Relaxed) {
            user(&subjects, &mut rng);
            if early.is_none() && start.elapsed() > time() / 4 {
                early = Some(resident_bytes());
            }
        }
        stop.store(true, Relaxed);
        (early.unwrap(), resident_bytes())
    });
    assert!(bursts.into_inner() > 0);
    assert!(late < early + (8 << 20), "memory grew from {early} to {late} bytes");
    // Everything is still there: each map takes as many elements as it may, and no more.
    for subject in subjects.iter().filter(|subject| subject.map.spec().kind != MapKind::LpmTrie) {
        let value = vec![1; subject.map.user_value_size()];
        for number in 0..KEYS {
            match subject.map.insert(&(subject.key)(number).0, &value) {
                Ok(()) | Err(Errno::E2BIG) => {}
                Err(errno) => panic!("{errno}"),
            }
        }
        assert_eq!(subject.map.keys().unwrap().count(), 64, "{}", subject.map.spec().kind);
    }
}

/// A time that does not come.
const NEVER: u64 = u64::MAX - 1;

/// Work of one worker on a timer that it found, or the element that it lies in.
fn use_timer(map: &Arc<Map>, queue: &Arc<TimerQueue>, cpu: usize, rng: &mut fastrand::Rng) {
    let number = rng.u32(..KEYS);
    let key = number.to_ne_bytes();
    match rng.u32(..8) {
        0 => drop(map.for_programs().delete(&key)),
        1..3 => drop(map.for_programs().update(&key, &[0; 32], 0, cpu)),
        _ => {
            let Some(value) = map.for_programs().lookup(&key, cpu) else { return };
            let address = value.as_ptr() as usize + 8;
            let _ = make_timer(map, address, 1);
            // Others may end it at any time; a burst keeps the element's memory and no more.
            let Some(timer) = timer_at(map, address) else { return };
            for _ in 0..rng.u32(1..5) {
                match rng.u32(..4) {
                    // SAFETY: it is no function that anybody calls.
                    0 => drop(unsafe { timer.set_callback(Arc::new(number)) }),
                    1 => drop(timer.start(queue, 0)),
                    2 => drop(timer.start(queue, NEVER)),
                    _ => drop(timer.cancel()),
                }
            }
        }
    }
}

/// Timers are armed, moved, cancelled, and lose their elements, while both workers fire those that are due.
#[test]
fn timers_end_with_their_elements() {
    for kind in [MapKind::Hash, MapKind::LruHash] {
        let timer = SpecialField { kind: SpecialKind::Timer, offset: 8, size: 16 };
        // More keys than elements.
        let spec = MapSpec { special: [timer].into(), ..spec(kind, 4, 32, 64, MapFlags::default()) };
        let map = Map::create(&spec, &LIMITS).unwrap();
        let user = MapUser::new(&map).unwrap();
        let queues = [TimerQueue::new(), TimerQueue::new()];
        let (stop, fired) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for (cpu, queue) in queues.iter().enumerate() {
                let (map, stop, fired) = (&map, &stop, &fired);
                scope.spawn(move || {
                    let mut reader = Domain::global().reader();
                    let mut rng = fastrand::Rng::with_seed(cpu as u64);
                    while !stop.load(Relaxed) {
                        let _burst = reader.pin();
                        (0..16).for_each(|_| use_timer(map, queue, cpu, &mut rng));
                        let started = queue.started();
                        while let Some(due) = queue.take_due(1, started) {
                            let number: u32 = *due.callback().downcast_ref().unwrap();
                            assert_eq!(due.key, number.to_ne_bytes(), "{kind}: a timer of another element");
                            fired.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
            let mut rng = fastrand::Rng::with_seed(2);
            let start = Instant::now();
            while start.elapsed() < time() / 4 {
                let key = rng.u32(..KEYS).to_ne_bytes();
                let _ = if rng.bool() { map.delete(&key) } else { map.insert(&key, &[0; 32]) };
            }
            stop.store(true, Relaxed);
        });
        assert!(fired.into_inner() > 0);
        // Whatever each queue has is of a timer that the map knows.
        drop(user);
        assert_eq!(queues.map(|queue| queue.len()), [0, 0], "{kind}");
    }
}

/// Inner maps are replaced, and made anew, while workers look into them.
#[test]
fn inner_maps_live_as_long_as_a_burst() {
    let inner = spec(MapKind::Array, 4, 8, 1, MapFlags::default());
    let outer = MapSpec {
        inner: Some(Box::new(inner.clone())),
        ..spec(MapKind::HashOfMaps, 4, 4, 4, MapFlags::default())
    };
    let outer = Map::create(&outer, &LIMITS).unwrap();
    let stop = AtomicBool::new(false);
    let found = AtomicU64::new(0);
    thread::scope(|scope| {
        for cpu in 0..2_usize {
            let (outer, stop, found) = (&outer, &stop, &found);
            scope.spawn(move || {
                let mut reader = Domain::global().reader();
                let mut rng = fastrand::Rng::with_seed(cpu as u64);
                while !stop.load(Relaxed) {
                    let _burst = reader.pin();
                    let key = rng.u32(..4).to_ne_bytes();
                    let Some(handle) = outer.for_programs().lookup(&key, cpu) else { continue };
                    // SAFETY: the handle of a map that lives as long as the reader is pinned.
                    let map = unsafe { handle.cast::<Map>().as_ref() };
                    let value = map.for_programs().lookup(&[0; 4], cpu).unwrap().cast::<u64>();
                    for _ in 0..10 {
                        // SAFETY: a value of the inner map; nothing but atomics touches it.
                        let seen = unsafe { AtomicU64::from_ptr(value.as_ptr()) }.load(Relaxed);
                        assert_eq!(seen, u64::from(u32::from_ne_bytes(key)) + 1000, "a map that is gone");
                    }
                    found.fetch_add(1, Relaxed);
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(3);
        let start = Instant::now();
        while start.elapsed() < time() / 2 {
            let number = rng.u32(..4);
            let map = Map::create(&inner, &LIMITS).unwrap();
            map.insert(&[0; 4], &(u64::from(number) + 1000).to_ne_bytes()).unwrap();
            outer.insert(&number.to_ne_bytes(), &map.id().to_ne_bytes()).unwrap();
            if rng.bool() {
                let _ = outer.delete(&rng.u32(..4).to_ne_bytes());
            }
        }
        stop.store(true, Relaxed);
    });
    assert!(found.into_inner() > 0);
}
