//! Large maps are cheap until they are used. Alone in its process, whose resident memory it reads.

use paceline_maps::{Limits, Map};
use paceline_spec::{MapFlags, MapKind};

mod common;

use common::spec;

const ENTRIES: u32 = 10_000_000;
/// All of the loop, at any time.
const MOST: usize = 32 << 20;
const VALUE: [u8; 40] = [1; 40];

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// The most that there ever were.
fn most_resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn pages_are_committed_when_used() {
    let limits = Limits { cpus: 2, memory: 1 << 32 };
    for (kind, key_size) in [
        (MapKind::Array, 4),
        (MapKind::PerCpuArray, 4),
        (MapKind::Hash, 16),
        (MapKind::PerCpuHash, 16),
        (MapKind::DevMap, 4),
        (MapKind::DevMapHash, 4),
        (MapKind::ProgArray, 4),
    ] {
        let before = resident_bytes();
        let value_size = match kind {
            MapKind::DevMap | MapKind::DevMapHash => 8,
            MapKind::ProgArray => 4,
            _ => VALUE.len(),
        };
        let spec = spec(kind, key_size, value_size as u32, ENTRIES, MapFlags::default());
        let map = Map::create(&spec, &limits).unwrap();
        let mut key = vec![0; key_size as usize];
        for index in 0..1000_u32 {
            key[..4].copy_from_slice(&index.to_ne_bytes());
            let mut value = VALUE.repeat(2)[..map.user_value_size()].to_vec();
            if value_size == 8 {
                value[4..].fill(0); // an interface without a program
            }
            map.insert(&key, &value).unwrap();
        }
        let grown = resident_bytes().saturating_sub(before);
        // A thousand elements of at most 96 bytes; in hashes, wherever in the table they are, a page of it each.
        let table =
            if matches!(kind, MapKind::Array | MapKind::PerCpuArray | MapKind::DevMap | MapKind::ProgArray) {
                0
            } else {
                1000 * 4096
            };
        assert!(grown < table + (1 << 20), "{kind}: {grown} bytes for 1000 of {ENTRIES} elements");
        // Nor when it goes.
        drop(map);
        let most = most_resident_bytes().saturating_sub(before);
        assert!(most < MOST, "{kind}: {most} bytes at most");
    }
}
