//! Helpers on maps (`kernel/bpf/helpers.c`).

use paceline_maps::{LookupFunction, Map};
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
    if unsafe { args::map(map) }.spec().kind.holds_sockets() {
        // SAFETY: the same.
        return unsafe { lookup_socket(map, key, host) };
    }
    // SAFETY: the same.
    unsafe { lookup(map, key, host.cpu()) }
}

/// The record of a socket that the host's network still has.
///
/// # Safety
/// As of [`lookup`].
unsafe fn lookup_socket(map: u64, key: u64, host: &Host) -> u64 {
    // SAFETY: the caller vouches for both.
    let number = unsafe {
        let map = args::map(map);
        map.for_programs().socket(&args::key(map, key))
    };
    let socket = number.and_then(|number| host.network().socket(number));
    socket.map_or(0, |socket| socket.record().expose_provenance() as u64)
}

/// A value for the socket of a record, in a map of sockets (`sock_map_update_elem`).
fn socket_value(map: &Map, record: u64, host: &Host) -> Result<Vec<u8>, Errno> {
    let network = host.network();
    let socket = network.socket_of_record(record as usize).ok_or(Errno::EINVAL)?;
    if !socket.state().is_full() {
        return Err(Errno::EINVAL);
    }
    if !socket.is_for_maps() {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = network.socket_number(socket).ok_or(Errno::EINVAL)?;
    Ok(match map.spec().value_size {
        4 => number.to_ne_bytes().to_vec(),
        _ => u64::from(number).to_ne_bytes().to_vec(),
    })
}

/// # Safety
/// The first two must be a map's handle and the address of a key of it, as of [`lookup_elem`].
unsafe fn lookup(map: u64, key: u64, cpu: usize) -> u64 {
    // SAFETY: the caller vouches for the map.
    let map = unsafe { args::map(map) };
    if let Some(LookupFunction { function, context, .. }) = map.for_programs().lookup_function() {
        // SAFETY: the map is in use by the caller, who vouches for the key.
        return unsafe { function(context, key, cpu as u64) };
    }
    // SAFETY: the caller vouches for the key.
    let key = unsafe { args::key(map, key) };
    map.for_programs().lookup(&key, cpu).map_or(0, |value| value.as_ptr() as u64)
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
    unsafe { lookup(map, key, cpu as u32 as usize) }
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
    let (map, key) = unsafe {
        let map = args::map(map);
        (map, args::key(map, key))
    };
    let value = if map.spec().kind.holds_sockets() {
        socket_value(map, value, host)
    } else {
        // SAFETY: the same.
        Ok(unsafe { args::bytes(value, map.spec().value_size as usize) })
    };
    status(value.and_then(|value| map.for_programs().update(&key, &value, flags, host.cpu())))
}

/// `long bpf_map_delete_elem(map, key)`
pub(super) unsafe extern "C" fn delete_elem(map: u64, key: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, key) = unsafe {
        let map = args::map(map);
        (map, args::key(map, key))
    };
    status(map.for_programs().delete(&key))
}

/// `long bpf_map_push_elem(map, value, flags)`
pub(super) unsafe extern "C" fn push_elem(
    map: u64,
    value: u64,
    flags: u64,
    _: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (map, value) = unsafe {
        let map = args::map(map);
        (map, args::bytes(value, map.spec().value_size as usize))
    };
    status(map.for_programs().push(&value, flags))
}

/// `long bpf_map_pop_elem(map, value)`
pub(super) unsafe extern "C" fn pop_elem(map: u64, value: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let map = unsafe { args::map(map) };
    let mut next = vec![0; map.spec().value_size as usize];
    let result = map.for_programs().pop(&mut next);
    // SAFETY: the arguments fit the prototype.
    unsafe { memory::copy_to(value, &next) };
    status(result)
}

/// `long bpf_map_peek_elem(map, value)`: a Bloom filter is asked for the value, and leaves it.
pub(super) unsafe extern "C" fn peek_elem(map: u64, value: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let map = unsafe { args::map(map) };
    let len = map.spec().value_size as usize;
    if map.spec().kind.tests_membership() {
        // SAFETY: the arguments fit the prototype.
        return status(map.for_programs().peek(&mut unsafe { args::bytes(value, len) }));
    }
    let mut next = vec![0; len];
    let result = map.for_programs().peek(&mut next);
    // SAFETY: the arguments fit the prototype.
    unsafe { memory::copy_to(value, &next) };
    status(result)
}
