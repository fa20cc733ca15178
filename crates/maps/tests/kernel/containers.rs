//! Values without keys, and maps of maps. A release build with `PACELINE_OPERATIONS=1000000` does as many.

use std::sync::Arc;

use paceline_maps::{Map, Mismatch};
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use crate::bpf::KernelMap;
use crate::operations::operations;
use crate::{Twin, kernel_permits, limits, spec};

fn random_flags(rng: &mut fastrand::Rng) -> u64 {
    [0, 0, 0, 0, 1, 2, 2, 3, 4, 1 << rng.u32(..64)][rng.usize(..10)]
}

#[test]
fn queues_and_stacks() {
    if !kernel_permits("queues_and_stacks") {
        return;
    }
    for kind in [MapKind::Queue, MapKind::Stack] {
        for (seed, (value_size, entries)) in
            [(1, 1), (4, 3), (8, 24), (13, 7), (1000, 5)].into_iter().enumerate()
        {
            let twin = Twin::create(&spec(kind, 0, value_size, entries, MapFlags::default()));
            let (ours, kernels) = (&twin.ours, &twin.kernels);
            let mut rng = fastrand::Rng::with_seed(seed as u64);
            let mut full = 0;
            for _ in 0..operations() / 5 {
                match rng.u32(..10) {
                    0..6 => {
                        let value: Vec<u8> =
                            std::iter::repeat_with(|| rng.u8(..)).take(value_size as usize).collect();
                        let flags = random_flags(&mut rng);
                        let result = ours.push(&value, flags);
                        assert_eq!(result, kernels.push(&value, flags), "push {flags:#x}");
                        full += usize::from(result == Err(Errno::E2BIG));
                    }
                    6..8 => assert_eq!(ours.pop(), kernels.pop()),
                    8 => {
                        let mut value = vec![0xee; value_size as usize];
                        let expected = kernels.peek(&mut value).map(|()| value);
                        assert_eq!((ours.peek(), ours.lookup(&[])), (expected.clone(), expected));
                    }
                    _ => {
                        let next = ours.next_key(None).map(|_| ());
                        assert_eq!((ours.delete(&[]), next), kernels.without_key());
                    }
                }
            }
            assert!(full > 0, "the sequence never filled the map");
        }
    }
}

/// Pushed values are found, in ours and in the kernel's; of others, both find few.
#[test]
fn bloom_filters() {
    if !kernel_permits("bloom_filters") {
        return;
    }
    for (extra, value_size) in [(0, 4), (1, 8), (3, 13), (15, 40)] {
        let like = MapSpec { extra, ..spec(MapKind::BloomFilter, 0, value_size, 1000, MapFlags::default()) };
        let twin = Twin::create(&like);
        let (ours, kernels) = (&twin.ours, &twin.kernels);
        let value = |number: u32| {
            let mut value = vec![7; value_size as usize];
            value[..4].copy_from_slice(&number.to_ne_bytes());
            value
        };
        for number in 0..1000 {
            let flags = u64::from(number % 100 == 99);
            assert_eq!(ours.push(&value(number), flags), kernels.push(&value(number), flags));
        }
        let mut found = [0; 2];
        for number in 0..11_000 {
            let (one, mut two) = (value(number), value(number));
            let results = [
                match ours.may_contain(&one) {
                    Ok(false) => Err(Errno::ENOENT),
                    found => found.map(drop),
                },
                kernels.peek(&mut two),
            ];
            if number < 1000 && number % 100 != 99 {
                assert_eq!(results, [Ok(()); 2]);
            } else if number >= 1000 {
                for (found, result) in found.iter_mut().zip(results) {
                    assert!(matches!(result, Ok(()) | Err(Errno::ENOENT)));
                    *found += usize::from(result.is_ok());
                }
            }
        }
        // The share is the kernel's, as far as ten thousand values tell.
        assert!(found[0] < found[1] * 3 / 2 + 100, "{extra}: {found:?} of 10000");
        assert_eq!((ours.delete(&[]), ours.next_key(None).map(|_| ())), kernels.without_key());
        assert_eq!(ours.pop(), kernels.pop());
    }
}

/// The same inner map twice.
struct Inner {
    ours: Arc<Map>,
    kernels: KernelMap,
}

impl Inner {
    fn create(spec: &MapSpec) -> Self {
        Self { ours: Map::create(spec, &limits()).unwrap(), kernels: KernelMap::create(spec, 8).unwrap() }
    }
}

#[test]
fn maps_of_maps() {
    if !kernel_permits("maps_of_maps") {
        return;
    }
    let none = MapFlags::default();
    let array = |entries| spec(MapKind::Array, 4, 8, entries, none);
    let likes = [
        array(3),
        spec(MapKind::Array, 4, 8, 3, MapFlags::INNER_MAP),
        spec(MapKind::Hash, 4, 8, 3, none),
        spec(MapKind::PerCpuArray, 4, 8, 3, none),
        spec(MapKind::LruHash, 4, 8, 3, none),
        spec(MapKind::XskMap, 4, 4, 3, none),
    ];
    let candidates: Vec<_> = [
        array(3),
        array(3),
        array(4),
        spec(MapKind::Array, 4, 9, 3, none),
        spec(MapKind::Array, 4, 8, 3, MapFlags::INNER_MAP),
        spec(MapKind::Array, 4, 8, 99, MapFlags::INNER_MAP),
        spec(MapKind::Hash, 4, 8, 3, none),
        spec(MapKind::Hash, 4, 8, 1000, none),
        spec(MapKind::Hash, 8, 8, 3, none),
        spec(MapKind::Hash, 4, 8, 3, MapFlags::NO_PREALLOC),
        spec(MapKind::PerCpuArray, 4, 8, 30, none),
        spec(MapKind::LruHash, 4, 8, 30, none),
        spec(MapKind::XskMap, 4, 4, 3, none),
        spec(MapKind::XskMap, 4, 4, 4, none),
    ]
    .iter()
    .map(Inner::create)
    .collect();
    for (seed, (kind, like)) in [MapKind::ArrayOfMaps, MapKind::HashOfMaps]
        .iter()
        .flat_map(|k| likes.iter().map(move |l| (k, l)))
        .enumerate()
    {
        let outer = MapSpec { inner: Some(Box::new(like.clone())), ..spec(*kind, 4, 4, 5, none) };
        let twin = Twin::create(&outer);
        let mut rng = fastrand::Rng::with_seed(seed as u64);
        let mut taken = 0;
        for _ in 0..operations() / 10 {
            let key = rng.u32(..8).to_ne_bytes();
            match rng.u32(..6) {
                0..3 => {
                    let flags = [0, 0, 0, 1, 2, 3, 9][rng.usize(..7)];
                    // Now and then something that is no map.
                    let inner = candidates.get(rng.usize(..candidates.len() + 1));
                    let (id, fd) = inner.map_or((u32::MAX, -1), |i| (i.ours.id(), i.kernels.fd()));
                    let ours = twin.ours.update_raw(&key, &id.to_ne_bytes(), flags);
                    assert_eq!(ours, twin.kernels.set(&key, &fd.to_ne_bytes(), flags), "{kind} {flags}");
                    taken += usize::from(ours.is_ok());
                    if let Some(inner) = inner
                        && ours.is_ok()
                    {
                        assert_eq!(twin.ours.check_inner(&inner.ours), Ok(()));
                        let found = twin.ours.for_programs().lookup(&key, 0).unwrap().as_ptr().cast_const();
                        assert_eq!(found.cast(), Arc::as_ptr(&inner.ours), "a program finds the map itself");
                    }
                }
                3 => {
                    let of = |id: Vec<u8>| u32::from_ne_bytes(id.try_into().unwrap());
                    let ours = twin.ours.lookup(&key).map(of);
                    let kernels = twin.kernels.get(&key).map(of);
                    let place = |ours: bool, id| {
                        candidates.iter().position(|i| id == if ours { i.ours.id() } else { i.kernels.id() })
                    };
                    assert_eq!(ours.map(|id| place(true, id)), kernels.map(|id| place(false, id)));
                }
                4 => drop(twin.remove(&key)),
                _ => twin.compare_keys(),
            }
        }
        assert!(taken > 0, "{kind}: nothing fits {like:?}");
        assert_eq!(twin.ours.check_inner(&twin.ours).map_err(|_| ()), Err(()));
    }
    let wrong = Map::create(&array(1), &limits()).unwrap();
    assert_eq!(wrong.check_inner(&wrong), Err(Mismatch::NoMapOfMaps));
    let outer = MapSpec { inner: Some(Box::new(array(3))), ..spec(MapKind::ArrayOfMaps, 4, 4, 5, none) };
    let outer = Map::create(&outer, &limits()).unwrap();
    let mismatch = outer.check_inner(&wrong).unwrap_err();
    assert_eq!(mismatch.to_string(), "the max_entries of inner maps is 3, of this one 1");
}
