//! Helpers on maps (`kernel/bpf/helpers.c`).

use paceline_maps::Map;
use paceline_spec::Errno;

use super::args;
use crate::host::Host;
use crate::memory;

/// What a helper returns for a result.
fn status(result: Result<(), Errno>) -> u64 {
    result.map_or_else(Errno::to_return, |()| 0)
}

/// `void *bpf_map_lookup_elem(map, key)`
pub(super) unsafe extern "C" fn lookup_elem(
    map: u64,
    key: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, key) = unsafe {
        let map = args::map(map);
        (map, args::key(map, key))
    };
    map.lookup(&key, host.cpu()).map_or(0, |value| value.as_ptr() as u64)
}

/// What finds values in one map, for code that calls it instead of the helper: it takes the map, the address of the key, and
/// the CPU.
pub(crate) type LookUpFn = unsafe extern "C" fn(u64, u64, u64) -> u64;

/// The function for a map, if there is one for keys of its size.
pub(crate) fn look_up_fn(map: &Map) -> Option<LookUpFn> {
    Some(match map.spec().key_size {
        4 => look_up::<4>,
        8 => look_up::<8>,
        12 => look_up::<12>,
        16 => look_up::<16>,
        _ => return None,
    })
}

/// # Safety
/// The first argument must be the address of a map whose keys have `N` bytes, and as many bytes readable at the second.
unsafe extern "C" fn look_up<const N: usize>(map: u64, key: u64, cpu: u64) -> u64 {
    let mut bytes = [0; N];
    // SAFETY: the caller vouches for both.
    let map = unsafe {
        memory::copy_from(&mut bytes, key);
        args::map(map)
    };
    map.lookup(&bytes, cpu as usize).map_or(0, |value| value.as_ptr() as u64)
}

/// `void *bpf_map_lookup_percpu_elem(map, key, cpu)`: null for a CPU that there is not.
pub(super) unsafe extern "C" fn lookup_percpu_elem(
    map: u64,
    key: u64,
    cpu: u64,
    _: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, key) = unsafe {
        let map = args::map(map);
        (map, args::key(map, key))
    };
    map.lookup(&key, cpu as u32 as usize).map_or(0, |value| value.as_ptr() as u64)
}

/// `long bpf_map_update_elem(map, key, value, flags)`
pub(super) unsafe extern "C" fn update_elem(
    map: u64,
    key: u64,
    value: u64,
    flags: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, key, value) = unsafe {
        let map = args::map(map);
        let key = args::key(map, key);
        (map, key, args::bytes(value, map.spec().value_size as usize))
    };
    status(map.update(&key, &value, flags, host.cpu()))
}

/// `long bpf_map_delete_elem(map, key)`
pub(super) unsafe extern "C" fn delete_elem(map: u64, key: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, key) = unsafe {
        let map = args::map(map);
        (map, args::key(map, key))
    };
    status(map.delete(&key))
}
