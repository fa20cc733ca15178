//! Views of programs and user space of each kind, where the kernel cannot be asked: addresses, limits, access.

use std::num::NonZeroU64;
use std::sync::Arc;

use paceline_btf::{SpecialField, SpecialKind};
use paceline_epoch::Domain;
use paceline_maps::{
    CreateErrorKind, EntryProgram, Limits, Map, MapTarget, MapUser, UpdateMode, announce, entry_program,
    entry_program_changes,
};
use paceline_spec::{Errno, InitialValue, MapFlags, MapKind, MapSpec, XdpAttach};

const ANY: u64 = 0;
const CPUS: usize = 3;
const LIMITS: Limits = Limits { cpus: CPUS, memory: 1 << 32 };

fn spec(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapSpec {
    crate::common::spec(kind, key_size, value_size, max_entries, MapFlags::default())
}

fn create(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> Arc<Map> {
    Map::create(&spec(kind, key_size, value_size, max_entries), &LIMITS).unwrap()
}

fn refusal(spec: &MapSpec, limits: &Limits) -> CreateErrorKind {
    Map::create(spec, limits).unwrap_err().cause
}

fn key(index: u32) -> [u8; 4] {
    index.to_ne_bytes()
}

/// The kinds with values that programs may change.
const VALUES: [MapKind; 4] = [MapKind::Array, MapKind::PerCpuArray, MapKind::Hash, MapKind::PerCpuHash];

#[test]
fn ids_are_unique_and_not_zero() {
    let maps: Vec<_> = (0..10).map(|_| create(MapKind::Array, 4, 8, 1)).collect();
    let mut ids: Vec<_> = maps.iter().map(|m| m.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
    assert!(!ids.contains(&0));
}

#[test]
fn a_program_sees_its_cpu_and_user_space_sees_all() {
    for kind in [MapKind::PerCpuArray, MapKind::PerCpuHash] {
        let map = create(kind, 4, 5, 4);
        map.for_programs().update(&key(1), b"abcde", ANY, 1).unwrap();
        assert_eq!(map.user_value_size(), 8 * CPUS);
        assert_eq!(map.lookup(&key(1)).unwrap(), b"\0\0\0\0\0\0\0\0abcde\0\0\0\0\0\0\0\0\0\0\0");
        map.for_programs().update(&key(1), b"ABCDE", ANY, 2).unwrap();
        assert_eq!(&map.lookup(&key(1)).unwrap()[8..], b"abcde\0\0\0ABCDE\0\0\0");
        let addresses: Vec<_> =
            (0..CPUS).map(|cpu| map.for_programs().lookup(&key(1), cpu).unwrap()).collect();
        assert!(addresses.iter().all(|a| map.for_programs().contains(a.addr().get(), 5)));
        assert_ne!(addresses[0], addresses[1]);
        assert_eq!(map.for_programs().lookup(&key(1), CPUS), None);
        assert_eq!(map.for_programs().update(&key(1), b"abcde", ANY, CPUS), Err(Errno::EINVAL));
    }
}

#[test]
fn contains_is_one_value_and_nothing_else() {
    for kind in VALUES {
        let map = create(kind, 4, 12, 3);
        for index in 0..3 {
            map.for_programs().update(&key(index), &[7; 12], ANY, 0).unwrap();
        }
        let value = map.for_programs().lookup(&key(1), 0).unwrap().addr().get();
        assert!(
            map.for_programs().contains(value, 12)
                && map.for_programs().contains(value + 11, 1)
                && map.for_programs().contains(value + 4, 8),
            "{kind}"
        );
        assert!(!map.for_programs().contains(value, 13), "{kind}: padding is no value");
        assert!(!map.for_programs().contains(value + 12, 1), "{kind}: padding is no value");
        assert!(!map.for_programs().contains(value + 8, 8), "{kind}: into the next");
        assert!(!map.for_programs().contains(value, 24), "{kind}: two values");
        assert!(!map.for_programs().contains(value, usize::MAX), "{kind}");
        assert!(!map.for_programs().contains(0, 1) && !map.for_programs().contains(usize::MAX, 1), "{kind}");
        let slack = 1 << 20;
        let inside = (value - slack..value + slack).filter(|&a| map.for_programs().contains(a, 12)).count();
        let lanes = if kind.is_per_cpu() { CPUS } else { 1 };
        if matches!(kind, MapKind::Array | MapKind::PerCpuArray) {
            assert_eq!(inside, 3 * lanes, "{kind}");
        } else {
            // Hashes have slots for those that wait to be used again.
            assert!(inside > 3 * lanes, "{kind}");
        }
    }
}

#[test]
fn a_stale_pointer_keeps_the_old_value_over_one_update() {
    let map = create(MapKind::Hash, 4, 8, 4);
    map.for_programs().update(&key(1), &[1; 8], ANY, 0).unwrap();
    let old = map.for_programs().lookup(&key(1), 0).unwrap();
    map.for_programs().update(&key(1), &[2; 8], ANY, 0).unwrap();
    let new = map.for_programs().lookup(&key(1), 0).unwrap();
    assert_ne!(old, new);
    map.for_programs().delete(&key(1)).unwrap();
    assert!(
        map.for_programs().contains(old.addr().get(), 8) && map.for_programs().contains(new.addr().get(), 8)
    );
}

#[test]
fn global_data_is_an_array_of_one() {
    let map = create(MapKind::Array, 4, 20, 1);
    let base = map.for_programs().lookup(&key(0), 0).unwrap();
    assert_eq!(map.for_programs().direct_value(0), Ok(base));
    assert_eq!(map.for_programs().direct_value(19).map(|p| p.addr().get()), Ok(base.addr().get() + 19));
    assert_eq!(map.for_programs().direct_value(20), Err(Errno::EINVAL));
    assert_eq!(create(MapKind::Array, 4, 20, 2).for_programs().direct_value(0), Err(Errno::ENOTSUPP));
    assert_eq!(create(MapKind::Hash, 4, 20, 1).for_programs().direct_value(0), Err(Errno::ENOTSUPP));
}

#[test]
fn array_layout_finds_every_value() {
    for kind in [MapKind::Array, MapKind::PerCpuArray] {
        let map = create(kind, 4, 12, 5);
        let layout = map.for_programs().array_layout().unwrap();
        assert_eq!(layout.entries, 5);
        for (cpu, index) in (0..CPUS).flat_map(|cpu| (0..5).map(move |i| (cpu, i))) {
            let offset = cpu * layout.cpu_stride + index * layout.stride;
            let value = map.for_programs().lookup(&key(index as u32), cpu).unwrap();
            assert_eq!(value.addr().get(), layout.base.addr().get() + offset);
        }
    }
    assert!(create(MapKind::Hash, 4, 12, 5).for_programs().array_layout().is_none());
}

#[test]
fn access_flags_hold() {
    let with = |flags| Map::create(&MapSpec { flags, ..spec(MapKind::Hash, 4, 8, 4) }, &LIMITS).unwrap();
    let map = with(MapFlags::RDONLY_PROG);
    assert!(map.for_programs().access().read && !map.for_programs().access().write);
    assert_eq!(map.for_programs().update(&key(1), &[0; 8], ANY, 0), Err(Errno::EPERM));
    assert_eq!(map.for_programs().delete(&key(1)), Err(Errno::EPERM));
    map.update_raw(&key(1), &[0; 8], ANY).unwrap();
    let map = with(MapFlags::WRONLY_PROG);
    assert!(!map.for_programs().access().read && map.for_programs().access().write);
}

#[test]
fn contents_fill_and_freeze() {
    let bytes = |b: &[u8]| InitialValue::Bytes(b.to_vec());
    let contents = vec![(key(0).to_vec(), bytes(b"abc")), (key(1).to_vec(), InitialValue::Map(3))];
    let spec = MapSpec { contents, frozen: true, ..spec(MapKind::Array, 4, 5, 2) };
    let map = Map::create(&spec, &LIMITS).unwrap();
    assert!(!map.is_frozen());
    map.fill(&spec.contents).unwrap();
    assert_eq!(map.lookup(&key(0)).unwrap(), b"abc\0\0");
    assert_eq!(map.update_raw(&key(0), b"vwxyz", ANY), Err(Errno::EPERM));
    assert!(map.is_frozen());
    map.for_programs().update(&key(0), b"vwxyz", ANY, 0).unwrap();

    let map = create(MapKind::Array, 4, 5, 2);
    let error =
        map.fill(&[(key(0).to_vec(), bytes(b"ok")), (key(0).to_vec(), bytes(b"toolong"))]).unwrap_err();
    assert_eq!((error.index, error.errno), (1, Errno::EINVAL));
    let error = map.fill(&[(key(2).to_vec(), bytes(b"ok"))]).unwrap_err();
    assert_eq!((error.index, error.errno), (0, Errno::E2BIG));
}

#[test]
fn memory_limit_counts_everything() {
    let tight = Limits { cpus: 4, memory: 1 << 20 };
    // Two pages' worth of elements either side of a MiB, by kind: bytes per element and CPU.
    for (kind, fits, too_many) in [
        (MapKind::Array, 131_072, 131_073 + 16),
        (MapKind::PerCpuArray, 32_768, 32_768 + 16),
        (MapKind::Hash, 16_384, 40_000),
        (MapKind::PerCpuHash, 5_000, 20_000),
        (MapKind::DevMap, 131_072, 131_073 + 16),
        (MapKind::ProgArray, 65_536, 65_536 + 8),
    ] {
        let value_size = if kind == MapKind::ProgArray { 4 } else { 8 };
        Map::create(&spec(kind, 4, value_size, fits), &tight).unwrap();
        let cause = refusal(&spec(kind, 4, value_size, too_many), &tight);
        assert!(
            matches!(cause, CreateErrorKind::Memory { entries, needed, limit: 1_048_576 }
                if entries == too_many && needed > 1 << 20),
            "{kind}: {cause:?}"
        );
    }
    let endless = Limits { cpus: usize::MAX, memory: u64::MAX };
    for kind in [MapKind::PerCpuArray, MapKind::PerCpuHash] {
        let cause = refusal(&spec(kind, 4, 8, 1000), &endless);
        assert!(matches!(cause, CreateErrorKind::OutOfMemory { .. }), "{kind}: {cause:?}");
    }
    assert_eq!(
        refusal(&spec(MapKind::Array, 4, 8, 1), &Limits { cpus: 0, memory: 9 }),
        CreateErrorKind::NoCpus
    );
}

#[test]
fn refusals_name_map_and_cause() {
    let text = |spec: MapSpec| Map::create(&spec, &LIMITS).unwrap_err().to_string();
    assert_eq!(
        text(spec(MapKind::Arena, 4, 4, 1)),
        "map \"m\": map type arena is not supported: needs memory that programs and user space address alike"
    );
    assert_eq!(text(spec(MapKind::Array, 8, 4, 1)), "map \"m\": key size is 8, must be 4 (EINVAL)");
    assert_eq!(text(spec(MapKind::DevMap, 4, 5, 1)), "map \"m\": value size is 5, must be 4 or 8 (EINVAL)");
    assert_eq!(text(spec(MapKind::Hash, 4, 4, 0)), "map \"m\": max_entries is zero (EINVAL)");
    let flags = MapSpec { flags: MapFlags::NO_PREALLOC, ..spec(MapKind::Array, 4, 4, 1) };
    assert_eq!(text(flags), "map \"m\": map flags 0x1 are not allowed (EINVAL)");
}

struct Program(XdpAttach);

impl EntryProgram for Program {
    fn attach(&self) -> XdpAttach {
        self.0
    }
}

/// A program that entries may name by a number, until it is dropped.
fn program(number: u32, attach: XdpAttach) -> Arc<dyn EntryProgram> {
    let program: Arc<dyn EntryProgram> = Arc::new(Program(attach));
    // SAFETY: no engine runs it.
    unsafe { announce(number, Arc::downgrade(&program)) };
    program
}

#[test]
fn entries_keep_their_programs_until_another_comes_or_the_last_user_goes() {
    let value = |first: u32, program: u32| [first.to_ne_bytes(), program.to_ne_bytes()].concat();
    let is_there = |number| {
        Domain::global().collect();
        entry_program(number).is_some()
    };
    let kinds = [
        (MapKind::DevMap, XdpAttach::DevMap),
        (MapKind::DevMapHash, XdpAttach::DevMap),
        (MapKind::CpuMap, XdpAttach::CpuMap),
    ];
    for ((kind, attach), number) in kinds.into_iter().zip((100..).step_by(10)) {
        let map = create(kind, 4, 8, 2);
        let user = MapUser::new(&map).unwrap();
        let set = |key: u32, number| {
            let program = program(number, attach);
            map.update_raw(&key.to_ne_bytes(), &value(1, number), ANY).unwrap();
            drop(program);
        };
        set(0, number);
        set(1, number + 1);
        assert!(is_there(number) && is_there(number + 1), "{kind}");
        let before = entry_program_changes();
        set(0, number + 2);
        assert!(!is_there(number) && is_there(number + 2), "{kind}: another is in its place");
        assert_ne!(entry_program_changes(), before);
        map.delete(&key(0)).unwrap();
        assert!(!is_there(number + 2) && is_there(number + 1), "{kind}: its element is gone");
        // The program may use the map, and would keep it for ever.
        drop(user);
        assert!(!is_there(number + 1), "{kind}: nobody uses the map");
    }
}

#[test]
fn redirect_targets() {
    let map = create(MapKind::DevMap, 4, 8, 4);
    let _egress = program(9, XdpAttach::DevMap);
    map.update_raw(&key(1), &[7, 0, 0, 0, 9, 0, 0, 0], ANY).unwrap();
    assert_eq!(map.redirect_target(1), Some(MapTarget::Device { ifindex: 7, program: 9 }));
    assert!(!map.for_programs().has_target(0) && !map.for_programs().has_target(4));
    let value = map.for_programs().lookup(&key(1), 0).unwrap();
    assert!(
        map.for_programs().contains(value.addr().get(), 8) && map.for_programs().lookup(&key(0), 0).is_none()
    );
    assert!(!map.for_programs().access().write);

    let map = create(MapKind::DevMapHash, 4, 4, 4);
    map.update_raw(&key(1000), &key(7), ANY).unwrap();
    assert_eq!(map.redirect_target(1000), Some(MapTarget::Device { ifindex: 7, program: 0 }));
    assert!(!map.for_programs().has_target(1));

    let map = create(MapKind::CpuMap, 4, 4, 4);
    map.update_raw(&key(2), &key(192), ANY).unwrap();
    assert_eq!(map.redirect_target(2), Some(MapTarget::Cpu { cpu: 2, queue_size: 192, program: 0 }));
    assert_eq!(map.update_raw(&key(3), &key(192), ANY), Err(Errno::ENODEV));
    assert!(map.for_programs().lookup(&key(2), 0).is_none());

    let map = create(MapKind::XskMap, 4, 4, 4);
    map.update_raw(&key(0), &key(0), ANY).unwrap();
    assert_eq!(map.redirect_target(0), Some(MapTarget::Socket { socket: 0 }));
    let socket = map.for_programs().lookup(&key(0), 0).unwrap().addr().get();
    assert!(map.for_programs().contains(socket, 4) && !map.for_programs().contains(socket, 5));
    assert_eq!(map.for_programs().update(&key(0), &key(1), ANY, 0), Err(Errno::EPERM));
    assert_eq!(map.update_with(&key(0), &key(1), UpdateMode::NoExist), Err(Errno::EEXIST));
    assert_eq!(map.update_with(&key(0), &key(0), UpdateMode::NoExist), Ok(()), "the same socket again");
    assert_eq!(map.update_with(&key(1), &key(1), UpdateMode::Exist), Err(Errno::ENOENT));
    map.update_with(&key(1), &key(1), UpdateMode::NoExist).unwrap();
    map.delete(&key(0)).unwrap();
    assert!(!map.for_programs().has_target(0) && map.for_programs().has_target(1));
}

#[test]
fn elements_are_counted_where_they_have_keys() {
    let elements = |map: &Map| map.for_programs().elements();
    for kind in [MapKind::DevMap, MapKind::CpuMap, MapKind::XskMap, MapKind::ProgArray, MapKind::SockMap] {
        let map = create(kind, 4, 4, 3);
        assert_eq!(elements(&map), Some(0), "{kind}");
        map.update_raw(&key(2), &key(7), ANY).unwrap();
        assert_eq!(elements(&map), Some(1), "{kind}");
    }
    let inner = create(MapKind::Array, 4, 8, 1);
    let mut outer = spec(MapKind::ArrayOfMaps, 4, 4, 3);
    outer.inner = Some(Box::new(inner.spec().clone()));
    let outer = Map::create(&outer, &LIMITS).unwrap();
    assert_eq!(elements(&outer), Some(0));
    outer.update_raw(&key(1), &key(inner.id()), ANY).unwrap();
    assert_eq!(elements(&outer), Some(1));
    // Elements of arrays are all there; user space's access does not matter.
    let mut write_only = spec(MapKind::Hash, 4, 8, 3);
    write_only.flags = MapFlags::WRONLY;
    let map = Map::create(&write_only, &LIMITS).unwrap();
    map.update_raw(&key(7), &[0; 8], ANY).unwrap();
    assert_eq!((elements(&map), elements(&inner)), (Some(1), Some(1)));
    for (kind, entries) in [(MapKind::Queue, 3), (MapKind::Stack, 3), (MapKind::RingBuf, 4096)] {
        let value = if kind == MapKind::RingBuf { 0 } else { 4 };
        assert_eq!(elements(&create(kind, 0, value, entries)), None, "{kind}");
    }
    assert_eq!(elements(&create(MapKind::BloomFilter, 0, 4, 3)), None);
}

#[test]
fn program_arrays_bind_programs_to_tokens() {
    let map = create(MapKind::ProgArray, 4, 4, 4);
    let token = NonZeroU64::new(0xfeed).unwrap();
    let table = map.for_programs().prog_array().unwrap();
    map.update_raw(&key(1), &key(0), ANY).unwrap();
    assert_eq!((table.len(), table.program(1), table.token(1)), (4, Some(0), None));
    // SAFETY: nobody jumps to these tokens.
    let install = |index, owner: &Arc<()>| unsafe {
        map.for_programs().install_program(index, 7, token, Box::new(owner.clone()))
    };
    let owner = Arc::new(());
    assert_eq!((install(1, &owner), install(9, &owner)), (Ok(()), Err(Errno::E2BIG)));
    assert_eq!((table.token(1), table.token(2)), (Some(token), None));
    assert_eq!((map.lookup(&key(1)).unwrap(), Arc::strong_count(&owner)), (key(7).to_vec(), 2));
    map.update_raw(&key(1), &key(5), ANY).unwrap();
    assert_eq!((table.program(1), table.token(1), Arc::strong_count(&owner)), (Some(5), None, 1));
    assert_eq!(install(1, &owner), Ok(()));
    map.delete(&key(1)).unwrap();
    assert_eq!((table.program(1), table.token(1), Arc::strong_count(&owner)), (None, None, 1));
    assert!(map.for_programs().lookup(&key(1), 0).is_none());
    assert!(table.admits(3) && table.admits(3) && !table.admits(4));

    let user = MapUser::new(&map).unwrap();
    let other = user.clone();
    assert_eq!(install(2, &owner), Ok(()));
    drop(user);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(other);
    assert_eq!((table.program(2), Arc::strong_count(&owner)), (None, 1), "the last user has gone");
    map.freeze().unwrap();
    assert_eq!((install(2, &owner), install(9, &owner)), (Err(Errno::EPERM), Err(Errno::EPERM)));
    assert_eq!((table.program(2), Arc::strong_count(&owner)), (None, 1));
}

#[test]
fn perf_event_arrays_have_an_entry_per_cpu() {
    let map = create(MapKind::PerfEventArray, 4, 4, 0);
    assert_eq!(map.spec().max_entries, CPUS as u32);
    assert_eq!(map.keys().unwrap().count(), CPUS);
}

#[test]
fn keys_are_complete_and_arrays_are_in_order() {
    let map = create(MapKind::Array, 4, 8, 10_000);
    assert!(map.keys().unwrap().eq((0..10_000).map(|i| key(i).to_vec())));
    let map = create(MapKind::Hash, 4, 8, 10_000);
    (0..10_000).for_each(|i| map.update_raw(&key(i), &[0; 8], ANY).unwrap());
    // The keys met so far are deleted, the others replaced: each still comes once.
    let mut seen = Vec::new();
    for k in map.keys().unwrap() {
        map.delete(&k).unwrap();
        seen.push(k);
        for i in 0..10 {
            let _ = map.update_with(&key(i * 997), &[1; 8], UpdateMode::Exist);
        }
    }
    seen.sort_unstable_by_key(|k| u32::from_ne_bytes(k[..].try_into().unwrap()));
    assert!(seen.into_iter().eq((0..10_000).map(|i| key(i).to_vec())));
    assert_eq!(map.next_key(None), Err(Errno::ENOENT));
}

/// A value of 16 bytes with a field that is not for loads and stores at 4.
fn with_field(kind: MapKind, field: SpecialKind, size: u32) -> MapSpec {
    let special = Box::new([SpecialField { kind: field, offset: 4, size }]);
    MapSpec { special, ..spec(kind, 4, 24, 4) }
}

#[test]
fn copies_leave_locks_out() {
    for kind in [MapKind::Array, MapKind::Hash] {
        let map = Map::create(&with_field(kind, SpecialKind::SpinLock, 4), &LIMITS).unwrap();
        let shown = b"aaaa\0\0\0\0bbbbccccddddeeee";
        map.update_raw(&key(1), b"aaaaLOCKbbbbccccddddeeee", ANY).unwrap();
        assert_eq!(map.lookup(&key(1)).unwrap(), shown);
        let value = map.for_programs().lookup(&key(1), 0).unwrap().addr().get();
        let is_lock: Vec<_> = (0..24).map(|offset| map.for_programs().is_spin_lock(value + offset)).collect();
        assert_eq!(is_lock.iter().position(|lock| *lock), Some(4));
        assert_eq!(is_lock.iter().filter(|lock| **lock).count(), 1);
        assert!(
            map.for_programs().touches_special(value + 1, 4)
                && map.for_programs().touches_special(value + 7, 1)
        );
        assert!(
            !map.for_programs().touches_special(value, 4)
                && !map.for_programs().touches_special(value + 8, 16)
        );
        assert_eq!(map.lookup_locked(&key(1)).unwrap(), shown);
        assert_eq!(map.lookup_locked(&key(9)), Err(Errno::ENOENT));
        map.for_programs().update(&key(1), b"AAAALOCKBBBBCCCCDDDDEEEE", ANY, 0).unwrap();
        assert_eq!(map.lookup(&key(1)).unwrap(), b"AAAA\0\0\0\0BBBBCCCCDDDDEEEE");
    }
}

#[test]
fn special_fields_are_for_some_kinds_only() {
    let errno = |spec: &MapSpec| Map::create(spec, &LIMITS).map(|_| ()).map_err(|error| error.errno());
    let lock = |kind| with_field(kind, SpecialKind::SpinLock, 4);
    let timer = |kind| with_field(kind, SpecialKind::Timer, 16);
    for kind in [MapKind::PerCpuArray, MapKind::PerCpuHash, MapKind::LruHash] {
        assert_eq!(errno(&lock(kind)), Err(Errno::EOPNOTSUPP), "{kind}");
    }
    assert_eq!(errno(&timer(MapKind::LruHash)), Ok(()));
    assert_eq!(errno(&timer(MapKind::PerCpuArray)), Err(Errno::EOPNOTSUPP));
    let read_only = MapSpec { flags: MapFlags::RDONLY_PROG, ..lock(MapKind::Array) };
    assert_eq!(errno(&read_only), Err(Errno::EACCES));
}

/// Pushes, peeks and membership are for the kinds without keys that have them.
#[test]
fn values_without_keys() {
    let other = Err(Errno::ENOTSUPP);
    let (hash, filter) = (create(MapKind::Hash, 4, 4, 4), create(MapKind::BloomFilter, 0, 4, 4));
    assert_eq!((hash.push(&[1; 4], 0), hash.peek()), (other, Err(Errno::ENOTSUPP)));
    assert_eq!(hash.may_contain(&[1; 4]), Err(Errno::ENOTSUPP));
    assert_eq!((filter.push(&[1; 4], 0), filter.peek()), (Ok(()), Err(Errno::ENOTSUPP)));
    assert_eq!((filter.may_contain(&[1; 4]), filter.may_contain(&[2; 4])), (Ok(true), Ok(false)));
    assert_eq!(filter.may_contain(&[1; 5]), Err(Errno::EINVAL));
    for kind in [MapKind::Queue, MapKind::Stack] {
        let map = create(kind, 0, 4, 2);
        assert_eq!(map.peek(), Err(Errno::ENOENT));
        assert_eq!((map.push(&[1; 4], 0), map.push(&[2; 4], 0)), (Ok(()), Ok(())));
        let (first, second) =
            if kind == MapKind::Queue { (vec![1; 4], vec![2; 4]) } else { (vec![2; 4], vec![1; 4]) };
        assert_eq!([map.peek(), map.pop(), map.pop()], [Ok(first.clone()), Ok(first), Ok(second)]);
        assert_eq!((map.push(&[1; 3], 0), map.push(&[1; 4], 8)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
        assert_eq!(map.may_contain(&[1; 4]), Err(Errno::ENOTSUPP));
        map.freeze().unwrap();
        assert_eq!(map.push(&[1; 4], 0), Err(Errno::EPERM));
    }
}
