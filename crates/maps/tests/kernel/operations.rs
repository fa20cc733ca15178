//! Random operations on the kinds that hold values.

use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use crate::{Twin, has_order, kernel_permits, spec};

/// Operations of each random sequence: a few thousand, or what `PACELINE_OPERATIONS` says.
pub(crate) fn operations() -> usize {
    let given = std::env::var("PACELINE_OPERATIONS").ok();
    given.map_or(6000, |given| given.parse().expect("a number of operations"))
}

const ENTRIES: u32 = 24;

/// Now and then an array index out of range, or more hash keys than fit.
fn random_key(rng: &mut fastrand::Rng, size: usize) -> Vec<u8> {
    let number = rng.u32(..ENTRIES + 8);
    let mut key = vec![0; size];
    // Both ends vary, so that padding and length matter.
    let bytes = number.to_ne_bytes();
    let head = size.min(4);
    key[..head].copy_from_slice(&bytes[..head]);
    if let Some(last) = key.get_mut(4..).and_then(<[u8]>::last_mut) {
        *last = bytes[0];
    }
    key
}

/// Few enough different bits that prefixes often nest; rarely too long a prefix.
pub(crate) fn random_prefix(rng: &mut fastrand::Rng, size: usize) -> Vec<u8> {
    let bits = 8 * (size as u32 - 4);
    let length = match rng.u32(..30) {
        0 => bits + 1,
        1 => rng.u32(..),
        2 => bits,
        _ => rng.u32(..=bits),
    };
    let mut key = length.to_ne_bytes().to_vec();
    key.extend((4..size).map(|_| [0x00, 0x00, 0x00, 0x80, 0xff][rng.usize(..5)]));
    key
}

fn random_bytes(rng: &mut fastrand::Rng, size: usize) -> Vec<u8> {
    std::iter::repeat_with(|| rng.u8(..)).take(size).collect()
}

fn random_flags(rng: &mut fastrand::Rng) -> u64 {
    match rng.u32(..20) {
        0..10 => 0,
        10..13 => 1,
        13..16 => 2,
        16 => 3,
        17 => 4,
        18 => 8,
        _ => 1 << rng.u32(..64),
    }
}

fn run(spec: &MapSpec, seed: u64) {
    let twin = Twin::create(spec);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut full = 0;
    for step in 0..operations() {
        let key = match spec.kind {
            MapKind::LpmTrie => random_prefix(&mut rng, spec.key_size as usize),
            _ => random_key(&mut rng, spec.key_size as usize),
        };
        match rng.u32(..10) {
            0..5 => {
                let value = random_bytes(&mut rng, twin.ours.user_value_size());
                let result = twin.set(&key, &value, random_flags(&mut rng));
                full += usize::from(matches!(result, Err(Errno::E2BIG | Errno::ENOSPC)));
            }
            5..8 => drop(twin.get(&key)),
            8 => drop(twin.remove(&key)),
            _ if has_order(spec.kind) => {
                assert_eq!(
                    twin.ours.next_key(Some(&key)),
                    twin.kernels.next_key(Some(&key)),
                    "after {key:?}"
                );
            }
            _ if step % 20 == 0 => twin.compare_keys(),
            _ => {}
        }
    }
    twin.compare_keys();
    let never_full = matches!(spec.kind, MapKind::LruHash | MapKind::LruPerCpuHash);
    assert!(never_full || full > 0, "the sequence never filled the map");
    for key in twin.kernels.keys() {
        twin.get(&key).unwrap();
    }
}

#[test]
fn arrays() {
    if !kernel_permits("arrays") {
        return;
    }
    for (seed, value_size) in [1, 4, 8, 13, 64, 1000].into_iter().enumerate() {
        for flags in [MapFlags::default(), MapFlags::RDONLY_PROG] {
            run(&spec(MapKind::Array, 4, value_size, ENTRIES, flags), seed as u64);
            run(&spec(MapKind::PerCpuArray, 4, value_size, ENTRIES, flags), seed as u64);
        }
        run(&spec(MapKind::Array, 4, value_size, ENTRIES, MapFlags::MMAPABLE), seed as u64);
    }
}

#[test]
fn hashes() {
    if !kernel_permits("hashes") {
        return;
    }
    let sizes = [(1, 1), (2, 9), (4, 8), (5, 3), (8, 16), (13, 64), (16, 24), (40, 100), (600, 1000)];
    for (seed, (key_size, value_size)) in sizes.into_iter().enumerate() {
        for flags in [MapFlags::default(), MapFlags::NO_PREALLOC, MapFlags::ZERO_SEED] {
            for kind in [MapKind::Hash, MapKind::PerCpuHash] {
                run(&spec(kind, key_size, value_size, ENTRIES, flags), seed as u64);
            }
        }
    }
}

#[test]
fn prefixes() {
    if !kernel_permits("prefixes") {
        return;
    }
    for (seed, (key_size, value_size)) in
        [(5, 1), (8, 8), (9, 4), (12, 13), (20, 4), (260, 40)].into_iter().enumerate()
    {
        // A byte of data does not make many prefixes.
        let entries = if key_size == 5 { 6 } else { ENTRIES };
        run(&spec(MapKind::LpmTrie, key_size, value_size, entries, MapFlags::NO_PREALLOC), seed as u64);
    }
}

/// Far from full, where the kernel evicts nothing: its lists take room in batches.
#[test]
fn lru_hashes_with_room() {
    if !kernel_permits("lru_hashes_with_room") {
        return;
    }
    for (seed, (key_size, value_size)) in [(1, 1), (4, 8), (13, 64), (40, 100)].into_iter().enumerate() {
        for flags in [MapFlags::default(), MapFlags::NO_COMMON_LRU] {
            for kind in [MapKind::LruHash, MapKind::LruPerCpuHash] {
                run(&spec(kind, key_size, value_size, 4096, flags), seed as u64);
            }
        }
    }
}

#[test]
fn a_full_table_still_replaces() {
    if !kernel_permits("a_full_table_still_replaces") {
        return;
    }
    for kind in [MapKind::Hash, MapKind::PerCpuHash] {
        for flags in [MapFlags::default(), MapFlags::NO_PREALLOC] {
            for entries in [1, 2, 3, 100] {
                let twin = Twin::create(&spec(kind, 4, 8, entries, flags));
                let value = |byte| vec![byte; twin.ours.user_value_size()];
                let key = |index: u32| index.to_ne_bytes();
                (0..entries).for_each(|i| twin.set(&key(i), &value(1), 0).unwrap());
                assert_eq!(twin.set(&key(entries), &value(1), 0), Err(Errno::E2BIG));
                (0..entries).for_each(|i| twin.set(&key(i), &value(2), 2).unwrap());
                twin.remove(&key(0)).unwrap();
                twin.set(&key(entries), &value(3), 0).unwrap();
                assert_eq!(twin.set(&key(0), &value(1), 0), Err(Errno::E2BIG));
                (0..=entries).for_each(|i| drop(twin.get(&key(i))));
                twin.compare_keys();
            }
        }
    }
}

#[test]
fn access_and_freezing() {
    if !kernel_permits("access_and_freezing") {
        return;
    }
    let access = [
        MapFlags::default(),
        MapFlags::RDONLY,
        MapFlags::WRONLY,
        MapFlags::RDONLY_PROG,
        MapFlags::WRONLY_PROG,
        MapFlags::RDONLY | MapFlags::RDONLY_PROG,
        MapFlags::WRONLY | MapFlags::RDONLY_PROG,
    ];
    let kinds = [MapKind::Array, MapKind::PerCpuArray, MapKind::Hash, MapKind::PerCpuHash];
    for (kind, flags) in kinds.iter().flat_map(|&kind| access.map(|flags| (kind, flags))) {
        let twin = Twin::create(&spec(kind, 4, 8, 4, flags));
        let (key, value) = ([0; 4], vec![1; twin.ours.user_value_size()]);
        let all = || {
            let _ = twin.set(&key, &value, 0);
            let _ = twin.set(&key, &value, 99);
            let _ = twin.get(&key);
            let _ = twin.remove(&key);
            assert_eq!(twin.ours.next_key(None), twin.kernels.next_key(None));
            assert_eq!(
                twin.ours.keys().err(),
                twin.kernels.next_key(None).err().filter(|e| *e == Errno::EPERM)
            );
        };
        all();
        let _ = twin.freeze();
        all();
        let _ = twin.freeze();
        all();
    }
}
