//! Helpers on maps (`kernel/bpf/helpers.c`).

use paceline_spec::Errno;

use super::args;
use crate::host::Host;

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
