//! Valid specifications: sizes, flags, and pairs of both.

use paceline_maps::Map;
use paceline_spec::{ElementKind, Errno, KeyKind, MapFlags, MapKind, MapSpec};

use crate::bpf::KernelMap;
use crate::{kernel_permits, limits, spec};

/// The kinds that Paceline has.
fn kinds() -> impl Iterator<Item = MapKind> {
    MapKind::ALL.iter().copied().filter(|kind| kind.is_supported())
}

/// The smallest map of a kind.
fn plain(kind: MapKind) -> MapSpec {
    let (key_size, flags) = match kind.rules().keys {
        KeyKind::None => (0, MapFlags::default()),
        KeyKind::Prefix => (8, MapFlags::NO_PREALLOC),
        KeyKind::Index | KeyKind::Bytes => (4, MapFlags::default()),
    };
    let inner = || Some(Box::new(spec(MapKind::Array, 4, 8, 3, MapFlags::default())));
    match kind.rules().elements {
        ElementKind::Records => spec(kind, 0, 0, 4096, flags),
        ElementKind::Maps => MapSpec { inner: inner(), ..spec(kind, key_size, 4, 1, flags) },
        _ => spec(kind, key_size, 4, 1, flags),
    }
}

#[test]
fn the_smallest_maps_are_created() {
    for kind in kinds() {
        assert!(Map::create(&plain(kind), &limits()).is_ok(), "{kind}");
    }
}

/// The kernel keeps these with the descriptor and not with the map.
const OF_DESCRIPTOR: u32 = MapFlags::RDONLY.0 | MapFlags::WRONLY.0;

/// Compares unless the kernel is short of memory: what it has left is not a rule.
fn compare(spec: &MapSpec) {
    let kernels = KernelMap::create(spec, 0).map(|map| map.entries_and_flags());
    if kernels == Err(Errno::ENOMEM) {
        return;
    }
    let ours = Map::create(spec, &limits());
    let made = ours
        .as_ref()
        .map(|map| (map.spec().max_entries, map.spec().flags.0 & !OF_DESCRIPTOR))
        .map_err(|e| e.errno());
    assert_eq!(made, kernels, "{spec:?}\nours: {:?}", ours.as_ref().err());
}

#[test]
fn key_sizes() {
    if !kernel_permits("key_sizes") {
        return;
    }
    const LARGE: u32 = 4 << 20;
    let sizes = [
        0,
        1,
        2,
        3,
        4,
        5,
        8,
        16,
        260,
        261,
        511,
        512,
        513,
        4096,
        32768,
        LARGE - 53,
        LARGE - 52,
        LARGE,
        u32::MAX,
    ];
    for kind in kinds() {
        sizes.iter().for_each(|&key_size| compare(&MapSpec { key_size, ..plain(kind) }));
    }
}

#[test]
fn value_sizes() {
    if !kernel_permits("value_sizes") {
        return;
    }
    const LARGE: u32 = 4 << 20;
    let sizes = [
        0,
        1,
        3,
        4,
        5,
        7,
        8,
        9,
        12,
        16,
        32760,
        32761,
        32767,
        32768,
        32769,
        LARGE - 54,
        LARGE - 53,
        LARGE - 52,
        LARGE - 297,
        LARGE - 296,
        LARGE - 295,
        LARGE - 281,
        LARGE - 280,
        LARGE - 279,
        LARGE - 8,
        LARGE,
        1 << 31,
        (1 << 31) + 1,
        u32::MAX - 7,
        u32::MAX,
    ];
    for (kind, value_size) in kinds().flat_map(|kind| sizes.map(|size| (kind, size))) {
        compare(&MapSpec { value_size, ..plain(kind) });
        compare(&MapSpec { value_size, flags: MapFlags::NO_PREALLOC, ..plain(kind) });
    }
}

#[test]
fn entries() {
    if !kernel_permits("entries") {
        return;
    }
    for kind in kinds() {
        // libbpf gives a perf event array an entry per CPU where the object names none, and so do we.
        let none = if kind == MapKind::PerfEventArray { 1 } else { 0 };
        for max_entries in [none, 1, 2, 3, 1000] {
            // A CPU map may have no more entries than the kernel was built for CPUs.
            if kind != MapKind::CpuMap || max_entries < 3 {
                compare(&MapSpec { max_entries, ..plain(kind) });
            }
        }
    }
    for max_entries in [(1 << 31) + 1, u32::MAX] {
        for kind in
            [MapKind::Hash, MapKind::PerCpuHash, MapKind::LruHash, MapKind::DevMapHash, MapKind::CpuMap]
        {
            compare(&MapSpec { max_entries, ..plain(kind) });
        }
    }
}

#[test]
fn flags() {
    if !kernel_permits("flags") {
        return;
    }
    // Bit 16 makes another field of the attribute a descriptor.
    let bits: Vec<u32> = (0..19).filter(|&bit| bit != 16).map(|bit| 1 << bit).collect();
    for kind in kinds() {
        for a in &bits {
            for b in &bits {
                compare(&MapSpec { flags: MapFlags(a | b), ..plain(kind) });
            }
        }
        compare(&MapSpec { flags: MapFlags(1 << 31), ..plain(kind) });
    }
}

#[test]
fn which_rule_comes_first() {
    if !kernel_permits("which_rule_comes_first") {
        return;
    }
    for kind in kinds() {
        for key_size in [0, 4, 8, u32::MAX] {
            for value_size in [0, 4, 5, 40_000, u32::MAX] {
                for max_entries in [0, 1] {
                    for flags in [0, 1, 3, 0x18, 0x180, 1 << 12] {
                        let all = MapSpec {
                            key_size,
                            value_size,
                            max_entries,
                            flags: MapFlags(flags),
                            ..plain(kind)
                        };
                        if kind != MapKind::PerfEventArray || max_entries != 0 {
                            compare(&all);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn extra() {
    if !kernel_permits("extra") {
        return;
    }
    for (kind, extra) in kinds().flat_map(|kind| [0, 1, 15, 16, 1 << 40].map(|extra| (kind, extra))) {
        compare(&MapSpec { extra, ..plain(kind) });
    }
}

#[test]
fn inner_maps() {
    if !kernel_permits("inner_maps") {
        return;
    }
    for outer in [MapKind::ArrayOfMaps, MapKind::HashOfMaps] {
        compare(&MapSpec { inner: None, ..plain(outer) });
        for inner in kinds() {
            compare(&MapSpec { inner: Some(Box::new(plain(inner))), ..plain(outer) });
        }
        let broken = MapSpec { max_entries: 0, ..plain(MapKind::Array) };
        let refusal = Map::create(&MapSpec { inner: Some(Box::new(broken)), ..plain(outer) }, &limits());
        assert_eq!(refusal.unwrap_err().to_string(), "map \"m\": an inner map: max_entries is zero (EBADF)");
    }
}
