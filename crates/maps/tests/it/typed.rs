//! Maps with keys and values of Rust types, against the same maps as bytes.

use std::collections::BTreeSet;
use std::sync::Arc;

use paceline_maps::{Limits, Map, PerCpu, TypeError, UpdateMode};
use paceline_spec::{Errno, MapFlags, MapKind};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// As a program would have it in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Flow {
    address: [u8; 4],
    port: [u8; 2],
    protocol: u8,
    ttl: u8,
}

/// Fields in the order of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Endpoint {
    address: U32,
    port: U16,
    reserved: U16,
}

fn map(kind: MapKind, key_size: u32, value_size: u32) -> Arc<Map> {
    let flags = if kind == MapKind::LpmTrie { MapFlags::NO_PREALLOC } else { MapFlags::default() };
    let limits = Limits { cpus: 3, memory: 1 << 20 };
    Map::create(&crate::common::spec(kind, key_size, value_size, 8, flags), &limits).unwrap()
}

#[test]
fn structures_are_their_bytes() {
    let map = map(MapKind::Hash, 8, 8);
    let flows = map.typed::<Flow, Endpoint>().unwrap();
    let flow = Flow { address: [10, 0, 0, 1], port: [0, 53], protocol: 17, ttl: 64 };
    let endpoint = Endpoint { address: 0x7f00_0001.into(), port: 80.into(), reserved: 0.into() };
    flows.insert(&flow, &endpoint).unwrap();
    assert_eq!(map.lookup(&[10, 0, 0, 1, 0, 53, 17, 64]).unwrap(), [127, 0, 0, 1, 0, 80, 0, 0]);
    assert_eq!(flows.lookup(&flow), Ok(Some(endpoint)));
    assert_eq!(
        flows.update_with(&flow, &endpoint, UpdateMode::NoExist),
        Err(Errno::EEXIST),
        "modes are those of bytes"
    );
    assert_eq!(flows.lookup_and_delete(&flow), Ok(Some(endpoint)));
    assert_eq!(flows.lookup_and_delete(&flow), Ok(None));
    assert_eq!(flows.delete(&flow), Ok(false));
    flows.insert(&flow, &endpoint).unwrap();
    assert_eq!(flows.delete(&flow), Ok(true));
}

#[test]
fn elements_go_in_and_out_in_batches() {
    let typed = map(MapKind::LruHash, 4, 8).typed::<u32, u64>().unwrap();
    let elements: Vec<(u32, u64)> = (0..5).map(|n| (n, u64::from(n) * 10)).collect();
    assert_eq!(typed.update_batch(elements.iter().map(|(key, value)| (key, value)), 0), Ok(5));
    assert_eq!(typed.keys().unwrap().collect::<BTreeSet<_>>(), (0..5).collect());
    assert_eq!(typed.iter().unwrap().collect::<BTreeSet<_>>(), elements.iter().copied().collect());
    assert_eq!(typed.delete_batch(&[0, 1]), Ok(2));
    let error = typed.delete_batch(&[2, 0]).unwrap_err();
    assert_eq!((error.done, error.errno), (1, Errno::ENOENT));
    assert_eq!(typed.drain().unwrap().collect::<BTreeSet<_>>(), BTreeSet::from([(3, 30), (4, 40)]));
    assert_eq!(typed.iter().unwrap().count(), 0);
}

#[test]
fn each_cpu_has_its_value() {
    for kind in [MapKind::PerCpuArray, MapKind::PerCpuHash, MapKind::LruPerCpuHash] {
        // Of a size that is rounded up from one CPU to the next.
        let map = map(kind, 4, 12);
        let typed = map.typed::<u32, PerCpu<[u32; 3]>>().unwrap();
        map.for_programs().update(&2_u32.to_ne_bytes(), [7_u32, 8, 9].as_bytes(), 0, 1).unwrap();
        assert_eq!(typed.lookup(&2), Ok(Some(PerCpu(vec![[0; 3], [7, 8, 9], [0; 3]]))), "{kind}");
        let values = PerCpu(vec![[1; 3], [2; 3], [3; 3]]);
        typed.insert(&2, &values).unwrap();
        assert_eq!(typed.lookup(&2), Ok(Some(values.clone())), "{kind}");
        assert!(typed.iter().unwrap().any(|element| element == (2, values.clone())), "{kind}");
        assert_eq!(typed.insert(&2, &PerCpu(vec![[1; 3]; 2])), Err(Errno::EINVAL), "{kind}: a CPU less");
        assert_eq!(typed.insert(&2, &PerCpu(vec![[1; 3]; 4])), Err(Errno::EINVAL), "{kind}: a CPU more");
    }
}

#[test]
fn queues_have_no_keys() {
    let queue = map(MapKind::Queue, 0, 4).typed::<(), u32>().unwrap();
    [1, 2].iter().for_each(|value| queue.insert(&(), value).unwrap());
    assert_eq!(queue.pop(), Ok(Some(1)));
    assert_eq!(queue.pop(), Ok(Some(2)));
    assert_eq!(queue.pop(), Ok(None));
    let array = map(MapKind::Array, 4, 4).typed::<u32, u32>().unwrap();
    assert_eq!(array.pop(), Err(Errno::ENOTSUPP));
}

#[test]
fn sizes_are_compared_once_and_named() {
    fn refused<V: paceline_maps::MapValue>(map: &Arc<Map>) -> String {
        map.typed::<u32, V>().unwrap_err().to_string()
    }
    let hash = map(MapKind::Hash, 4, 8);
    assert_eq!(refused::<u32>(&hash), r#"map "m": its values have 8 bytes, `u32` has 4"#);
    assert_eq!(refused::<PerCpu<u64>>(&hash), r#"map "m": it has one value for all CPUs, `u64`"#);
    let error = hash.typed::<u64, u64>().unwrap_err();
    assert_eq!(error.to_string(), r#"map "m": its keys have 4 bytes, `u64` has 8"#);
    let per_cpu = map(MapKind::PerCpuHash, 4, 4);
    assert_eq!(refused::<u32>(&per_cpu), r#"map "m": it has a value for each CPU, `PerCpu<u32>`"#);
    // Not what a value of user space takes: 4 bytes, rounded up, once for each CPU.
    assert_eq!(refused::<PerCpu<u64>>(&per_cpu), r#"map "m": its values have 4 bytes, `u64` has 8"#);
    let limits = Limits { cpus: 1, memory: 1 << 20 };
    let ring = crate::common::spec(MapKind::RingBuf, 0, 0, 4096, MapFlags::default());
    let ring = Map::create(&ring, &limits).unwrap();
    assert!(matches!(ring.typed::<(), ()>(), Err(TypeError::NoElements { .. })));
}
