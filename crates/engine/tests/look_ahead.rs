//! When look-ups are made ahead of bursts, and what a burst that stops leaves behind.
#![cfg(feature = "jit")]

mod common;

use std::sync::Arc;

use paceline_engine::{Engine, Host, LookAhead, NoSlice, Program};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_maps::{Limits, Map};
use paceline_spec::{MapFlags, MapKind, MapSpec};

use common::verified;

/// Bytes in use from which `auto` makes look-ups ahead, as the documentation says.
const LARGE: u32 = 8 << 20;

/// Looks up a number of the packet, which calls the program at 0 of the second map if its first byte is 1.
const LOOK_UP: &str = "
    r6 = r1
    r2 = *(u32 *)(r1 + 4)
    r7 = *(u32 *)(r1 + 0)
    r3 = r7
    r3 += 16
    if r3 > r2 goto out
    r3 = *(u64 *)(r7 + 8)
    *(u64 *)(r10 - 8) = r3
    r1 = map[0] ll
    r2 = r10
    r2 += -KEY
    call bpf_map_lookup_elem
    r3 = *(u8 *)(r7 + 0)
    if r3 != 1 goto out
    r1 = r6
    r2 = map[1] ll
    r3 = 0
    call bpf_tail_call
out:
    r0 = 2
    exit";

/// The program with a map of interest, and one for tail calls.
fn load(map: MapSpec, look_ahead: LookAhead) -> (Program, [Arc<Map>; 2]) {
    let specs = [map, MapSpec::new("programs", MapKind::ProgArray, 4, 4, 1)];
    let limits = Limits { cpus: 1, memory: 1 << 30 };
    let maps = specs.clone().map(|spec| Map::create(&spec, &limits).expect("is made"));
    let text = LOOK_UP.replace("KEY", &specs[0].key_size.next_multiple_of(8).to_string());
    let program = verified(&text, &specs);
    (Program::load_with(&program, maps.to_vec(), Engine::Jit, look_ahead).expect("loads"), maps)
}

fn spec(kind: MapKind, sizes: [u32; 2], entries: u32) -> MapSpec {
    let flags = if kind == MapKind::LpmTrie { MapFlags::NO_PREALLOC } else { MapFlags::default() };
    MapSpec { flags, ..MapSpec::new("map", kind, sizes[0], sizes[1], entries) }
}

#[test]
fn maps_that_may_be_large_have_slices() {
    if !Engine::Jit.is_available() {
        return;
    }
    let slice = |map: MapSpec, look_ahead| load(map, look_ahead).0.no_slice().cloned();
    let array = |entries| spec(MapKind::Array, [4, 8], entries);
    assert_eq!(slice(array(LARGE / 8), LookAhead::Auto), None);
    assert_eq!(slice(array(LARGE / 8 - 1000), LookAhead::Auto), Some(NoSlice::NoLookUp));
    assert_eq!(slice(array(LARGE / 8 - 1000), LookAhead::Always), None);
    assert_eq!(slice(array(LARGE / 8), LookAhead::Never), Some(NoSlice::NotAsked));
    // Keys and values take less than 8 MiB, their slots and buckets more.
    assert_eq!(slice(spec(MapKind::Hash, [4, 4], 1_000_000), LookAhead::Auto), None);
    assert_eq!(slice(spec(MapKind::Hash, [4, 4], 100_000), LookAhead::Auto), Some(NoSlice::NoLookUp));
    assert_eq!(slice(spec(MapKind::LpmTrie, [8, 4], 600_000), LookAhead::Auto), None);
}

/// A burst of packets with the verdict 9 of another program.
fn burst(first_bytes: &[u8]) -> Burst {
    let mut burst = Burst::default();
    for &first in first_bytes {
        let mut packet = [0; 60];
        packet[0] = first;
        burst.push(&packet, FrameMeta::default()).expect("there is room");
    }
    let nine = Program::load(&verified("r0 = 9\nexit", &[]), Vec::new(), Engine::Plain).expect("loads");
    nine.run_burst(&mut burst, &mut Host::new(0)).expect("ends");
    burst
}

#[test]
fn packets_from_a_fault_on_are_aborted() {
    if !Engine::Jit.is_available() {
        return;
    }
    let endless = verified("r0 = 7\nr0 += 1\nexit", &[]);
    let endless = Program::load(&endless, Vec::new(), Engine::Plain).expect("loads").with_budget(1);
    let codes = |look_ahead| {
        let (program, maps) = load(spec(MapKind::Hash, [8, 8], 16), look_ahead);
        assert_eq!(program.slice().is_some(), look_ahead == LookAhead::Always);
        endless.install(&maps[1], 0).expect("is put there");
        let mut burst = burst(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let fault =
            program.run_burst(&mut burst, &mut Host::new(0)).expect_err("the budget is one instruction");
        (fault.index, burst.iter().map(|frame| frame.code()).collect::<Vec<_>>())
    };
    let plain = codes(LookAhead::Never);
    assert_eq!(plain.0, 3);
    assert_eq!(plain.1[3..], [Verdict::Aborted as u32; 7]);
    assert_eq!(codes(LookAhead::Always), plain);
}
