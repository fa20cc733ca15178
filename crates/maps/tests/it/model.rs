//! Hash kinds against a plain map of the standard library, larger than the kernel comparison can afford, and with
//! the addresses that programs get.

use std::collections::HashMap;
use std::ptr::NonNull;

use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

const CPUS: usize = 2;
const OPERATIONS: usize = 40_000;

fn spec(kind: MapKind, key_size: usize, value_size: usize, max_entries: u32) -> MapSpec {
    crate::common::spec(kind, key_size as u32, value_size as u32, max_entries, MapFlags::default())
}

fn read(address: NonNull<u8>, len: usize) -> Vec<u8> {
    // SAFETY: the map that gave the address lives, its values have `len` bytes, and no other thread writes.
    unsafe { std::slice::from_raw_parts(address.as_ptr(), len) }.to_vec()
}

/// The rules of `BPF_MAP_UPDATE_ELEM` for hashes.
fn model_update(model: &HashMap<Vec<u8>, Vec<u8>>, key: &[u8], flags: u64, max: usize) -> Result<(), Errno> {
    match (flags, model.contains_key(key)) {
        (1, true) => Err(Errno::EEXIST),
        (2, false) => Err(Errno::ENOENT),
        (0..=2, true) => Ok(()),
        (0..=2, false) if model.len() == max => Err(Errno::E2BIG),
        (0..=2, false) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

fn run(kind: MapKind, key_size: usize, value_size: usize, max_entries: u32, seed: u64) {
    let limits = Limits { cpus: CPUS, memory: 1 << 30 };
    let map = Map::create(&spec(kind, key_size, value_size, max_entries), &limits).unwrap();
    let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..OPERATIONS {
        let mut key = vec![0; key_size];
        let number = rng.u32(..max_entries + max_entries / 4).to_le_bytes();
        // At the end, so that keys which differ only in their last, partial word are told apart.
        let at = key_size.saturating_sub(4);
        key[at..].copy_from_slice(&number[..key_size - at]);
        match rng.u32(..8) {
            0..4 => {
                let value: Vec<u8> =
                    std::iter::repeat_with(|| rng.u8(..)).take(map.user_value_size()).collect();
                let flags = [0, 0, 0, 1, 2, 5][rng.usize(..6)];
                let expected = model_update(&model, &key, flags, max_entries as usize);
                assert_eq!(map.update_raw(&key, &value, flags), expected);
                if expected.is_ok() {
                    model.insert(key, value);
                }
            }
            4 | 5 => {
                assert_eq!(map.lookup(&key).ok().as_ref(), model.get(&key));
                let cpu = rng.usize(..CPUS);
                let seen = map.for_programs().lookup(&key, cpu).map(|address| {
                    assert!(map.for_programs().contains(address.addr().get(), value_size));
                    read(address, value_size)
                });
                let start = if kind.is_per_cpu() { cpu * value_size.next_multiple_of(8) } else { 0 };
                assert_eq!(seen.as_deref(), model.get(&key).map(|value| &value[start..start + value_size]));
            }
            _ => {
                let expected = model.remove(&key).map(|_| ()).ok_or(Errno::ENOENT);
                assert_eq!(map.for_programs().delete(&key), expected);
            }
        }
    }
    let mut keys: Vec<_> = map.keys().unwrap().collect();
    keys.sort();
    let mut expected: Vec<_> = model.keys().cloned().collect();
    expected.sort();
    assert_eq!(keys, expected);
}

#[test]
fn hash_is_a_hash_map() {
    for (seed, (key_size, value_size)) in
        [(3, 8), (4, 1), (8, 9), (13, 40), (16, 16), (40, 3)].into_iter().enumerate()
    {
        run(MapKind::Hash, key_size, value_size, 2000, seed as u64);
    }
}

#[test]
fn per_cpu_hash_is_a_hash_map() {
    for (seed, (key_size, value_size)) in [(3, 8), (4, 1), (13, 40)].into_iter().enumerate() {
        run(MapKind::PerCpuHash, key_size, value_size, 2000, seed as u64);
    }
}

#[test]
fn a_pointer_outlives_replacement_and_deletion() {
    let limits = Limits { cpus: CPUS, memory: 1 << 30 };
    let map = Map::create(&spec(MapKind::Hash, 4, 8, 4), &limits).unwrap();
    map.for_programs().update(&[1; 4], &[1; 8], 0, 0).unwrap();
    let first = map.for_programs().lookup(&[1; 4], 0).unwrap();
    map.for_programs().update(&[1; 4], &[2; 8], 0, 0).unwrap();
    let second = map.for_programs().lookup(&[1; 4], 0).unwrap();
    assert_eq!((read(first, 8), read(second, 8)), (vec![1; 8], vec![2; 8]), "replaced, not overwritten");
    // A new key does not get the memory of a replaced element, only that of a deleted one.
    map.for_programs().update(&[2; 4], &[3; 8], 0, 0).unwrap();
    assert_eq!(read(first, 8), [1; 8]);
    map.for_programs().delete(&[1; 4]).unwrap();
    assert_eq!(read(second, 8), [2; 8]);
    assert!([first, second].iter().all(|address| map.for_programs().contains(address.addr().get(), 8)));
}
