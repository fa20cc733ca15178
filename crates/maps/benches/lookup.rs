//! Cost of operations: `cargo bench -p paceline-maps`. Prints nanoseconds per operation, keys in random order, for
//! one thread and for two at once on the same map: the best of many short windows, so that other work on the machine
//! matters little, and of two threads the slower one. Numbers of entries may be given:
//! `cargo bench -p paceline-maps -- 1000 4000000`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use paceline_maps::{Limits, Map};
use paceline_spec::{MapKind, MapSpec};

const OPERATIONS: usize = 1 << 18;
const WINDOW: usize = 1 << 12;
const ROUNDS: usize = 4;
const DEFAULT_ENTRIES: [u32; 2] = [1000, 100_000];

fn create(kind: MapKind, key_size: usize, max_entries: u32) -> Arc<Map> {
    let spec = MapSpec::new("bench", kind, key_size as u32, 8, max_entries);
    Map::create(&spec, &Limits { cpus: 2, memory: 1 << 33 }).unwrap()
}

fn key(number: u32, size: usize) -> Vec<u8> {
    let mut key = vec![0x5a; size];
    key[size - 4..].copy_from_slice(&number.to_ne_bytes());
    key
}

/// Keys numbered from `start` up, in random order, end to end.
fn keys(start: u32, count: u32, size: usize, seed: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..OPERATIONS).flat_map(|_| key(start + rng.u32(..count), size)).collect()
}

/// Best time of an operation over a window of keys, by each of so many threads at the same time.
fn measure(threads: usize, keys: &[u8], size: usize, operation: impl Fn(&[u8], usize) + Sync) -> f64 {
    let window = |keys: &[u8], cpu: usize| {
        let start = Instant::now();
        keys.chunks_exact(size).for_each(|key| operation(key, cpu));
        start.elapsed().as_secs_f64()
    };
    let run = |cpu: usize| {
        let windows = (0..ROUNDS).flat_map(|_| keys.chunks_exact(WINDOW * size));
        windows.map(|keys| window(keys, cpu)).fold(f64::MAX, f64::min)
    };
    let slowest = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|cpu| scope.spawn(move || run(cpu))).collect();
        all.into_iter().map(|worker| worker.join().unwrap()).fold(0.0, f64::max)
    });
    slowest * 1e9 / WINDOW as f64
}

fn main() {
    let given: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let entries = if given.is_empty() { DEFAULT_ENTRIES.to_vec() } else { given };
    println!(
        "{:14} {:>4} {:>9} {:>8} {:>7} {:>7} {:>7}",
        "map", "key", "entries", "threads", "hit", "miss", "update"
    );
    use MapKind::{Array, Hash, LruHash, PerCpuArray, PerCpuHash};
    for kind in [Array, PerCpuArray, Hash, PerCpuHash, LruHash] {
        let sizes: &[usize] = if matches!(kind, Array | PerCpuArray) { &[4] } else { &[4, 16, 40] };
        for (&size, entries) in
            sizes.iter().flat_map(|size| entries.iter().map(move |&entries| (size, entries)))
        {
            let map = create(kind, size, entries);
            let value = vec![1; map.user_value_size()];
            (0..entries).for_each(|i| map.insert(&key(i, size), &value).unwrap());
            let present = keys(0, entries, size, 1);
            let absent = keys(entries, entries, size, 2);
            for threads in [1, 2] {
                let look =
                    |key: &[u8], cpu: usize| _ = black_box(map.for_programs().lookup(black_box(key), cpu));
                let hit = measure(threads, &present, size, look);
                let miss = measure(threads, &absent, size, look);
                let update = measure(threads, &present, size, |key, cpu| {
                    map.for_programs().update(key, &[1; 8], 0, cpu).unwrap()
                });
                println!(
                    "{:14} {size:4} {entries:9} {threads:8} {hit:7.1} {miss:7.1} {update:7.1}",
                    kind.name()
                );
            }
        }
    }
}
