//! Walks ask for the cache lines that look-ups read: the elements' own are among them.

use std::sync::Arc;

use paceline_spec::{MapFlags, MapKind, MapSpec};

use crate::create::Limits;
use crate::fill::Fill;
use crate::map::Map;
use crate::slab::PREFETCHED;
use crate::walks::Walks;

const LINE: usize = 64;
const ELEMENTS: u32 = 2000;

fn map(kind: MapKind, key_size: u32, value_size: u32) -> Arc<Map> {
    let flags = if kind == MapKind::LpmTrie { MapFlags::NO_PREALLOC } else { MapFlags::default() };
    let spec = MapSpec { flags, ..MapSpec::new("m", kind, key_size, value_size, ELEMENTS) };
    Map::create(&spec, &Limits { cpus: 2, memory: 1 << 30 }).unwrap()
}

/// The key of an element: for tries prefixes of 20 to 32 bits, so that they end in each level.
fn key(kind: MapKind, size: u32, element: u32) -> Vec<u8> {
    let mut key = element.to_ne_bytes().to_vec();
    if kind == MapKind::LpmTrie {
        let bits = 20 + element % 13;
        let address = (element << 12 | 0x8000_0000 | element & 0xff) & (u32::MAX << (32 - bits));
        key = [bits.to_ne_bytes(), address.to_be_bytes()].concat();
    }
    key.resize(size as usize, 0);
    key
}

/// Runs walks for keys, and gives the lines that they asked for.
fn walk(map: &Map, keys: &[Vec<u8>]) -> Vec<usize> {
    let ahead = map.for_programs().ahead_function().expect("a kind with look-ups ahead");
    PREFETCHED.with_borrow_mut(Vec::clear);
    let mut walks = Walks::default();
    walks.begin(0);
    for key in keys {
        let mut word = [0; 8];
        let argument = if ahead.by_word {
            word[..key.len()].copy_from_slice(key);
            u64::from_ne_bytes(word)
        } else {
            key.as_ptr() as u64
        };
        // SAFETY: the map lives, the key has its size, and nothing else uses the walks.
        unsafe { (ahead.function)(ahead.context, argument, std::ptr::from_mut(&mut walks) as u64) };
    }
    // SAFETY: the map lives.
    unsafe { walks.finish() };
    assert!(walks.walks.is_empty(), "all walks end");
    PREFETCHED.with_borrow(|addresses| addresses.iter().map(|address| address / LINE).collect())
}

/// The address of the value that a look-up finds.
fn found(map: &Map, key: &[u8]) -> Option<usize> {
    map.for_programs().lookup(key, 0).map(|value| value.addr().get())
}

fn walks_reach_the_values(kind: MapKind, key_size: u32, value_size: u32) {
    let map = map(kind, key_size, value_size);
    let keys: Vec<Vec<u8>> = (0..ELEMENTS).map(|element| key(kind, key_size, element)).collect();
    let per_cpu = map.user_value_size();
    for key in &keys {
        map.insert(key, &vec![1; per_cpu]).unwrap_or_else(|error| panic!("{kind:?} {key:?}: {error}"));
    }
    // Look-ups take addresses, which have all bits.
    let asked: Vec<Vec<u8>> = match kind {
        MapKind::LpmTrie => keys.iter().map(|key| [&32_u32.to_ne_bytes(), &key[4..]].concat()).collect(),
        _ => keys,
    };
    let mut missed = 0;
    for keys in asked.chunks(64) {
        let lines = walk(&map, keys);
        for key in keys {
            let value = found(&map, key).expect("the element is there");
            missed += usize::from(!lines.contains(&(value / LINE)));
        }
    }
    // Walks look into the first bucket of a hash only, and a few elements of a full table lie in others.
    let most = if kind.is_array() || kind == MapKind::LpmTrie { 0 } else { ELEMENTS as usize / 50 };
    assert!(missed <= most, "{kind:?}, keys of {key_size}: {missed} of {ELEMENTS} values are not asked for");
}

#[test]
fn walks_ask_for_the_lines_of_values() {
    for (kind, key_size) in [
        (MapKind::Array, 4),
        (MapKind::PerCpuArray, 4),
        (MapKind::LpmTrie, 8),
        (MapKind::Hash, 4),
        (MapKind::Hash, 6),
        (MapKind::Hash, 8),
        (MapKind::Hash, 13),
        (MapKind::Hash, 16),
        (MapKind::Hash, 24),
        (MapKind::Hash, 32),
        (MapKind::Hash, 40),
        (MapKind::Hash, 64),
        (MapKind::LruHash, 4),
        (MapKind::LruHash, 16),
        (MapKind::PerCpuHash, 8),
        (MapKind::LruPerCpuHash, 12),
    ] {
        walks_reach_the_values(kind, key_size, 8);
    }
}

/// What decides before a slice is made must not be less than what decides at each burst.
#[test]
fn maps_are_never_larger_than_when_full() {
    for (kind, key_size) in [
        (MapKind::Array, 4),
        (MapKind::LpmTrie, 8),
        (MapKind::Hash, 4),
        (MapKind::LruHash, 16),
        (MapKind::PerCpuHash, 8),
    ] {
        let map = map(kind, key_size, 4);
        let full = map.for_programs().look_up_bytes(Fill::Full);
        let empty = map.for_programs().look_up_bytes(Fill::Now);
        assert!(full >= u64::from(ELEMENTS) * 4, "{kind:?}: {full}");
        let value = vec![1; map.user_value_size()];
        (0..ELEMENTS).for_each(|element| map.insert(&key(kind, key_size, element), &value).unwrap());
        let now = map.for_programs().look_up_bytes(Fill::Now);
        // Slots are taken in chunks.
        assert!(now <= full + full / 20 && now >= empty, "{kind:?}: {empty}, {now} of {full}");
        assert_eq!(empty == 0, kind != MapKind::Array, "{kind:?}: arrays are always full");
    }
}

#[test]
fn keys_that_are_too_long_have_no_walks() {
    let map = map(MapKind::Hash, 65, 8);
    assert!(map.for_programs().ahead_function().is_none());
}
