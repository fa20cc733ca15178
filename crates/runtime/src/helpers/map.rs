//! Helpers on maps (`kernel/bpf/helpers.c`).

use paceline_maps::Map;
use paceline_spec::Errno;

use super::argument::Object;
use super::function::Pointer;
use super::map_argument::{Key, NextValue, Value};
use super::mem::Bytes;
use crate::host::Host;

/// `void *bpf_map_lookup_elem(map, key)`
#[inline(always)]
pub(super) fn lookup_elem(host: &mut Host, map: &Map, key: Key<'_>) -> Pointer {
    Pointer(match map.spec().kind.holds_sockets() {
        true => socket_record(host, map, key),
        false => key.look_up(host.cpu()),
    })
}

/// The address of the record of a socket that the host's network still has, or null.
fn socket_record(host: &Host, map: &Map, key: Key<'_>) -> u64 {
    let number = key.with(|key| map.for_programs().socket(key));
    let socket = number.and_then(|number| host.world.network().socket(number));
    socket.map_or(0, |socket| socket.record().expose_provenance() as u64)
}

/// A value for the socket of a record, in a map of sockets (`sock_map_update_elem`).
fn socket_value(map: &Map, record: Object, host: &Host) -> Result<Bytes, Errno> {
    let network = host.world.network();
    let socket = network.socket_of_record(record.0 as usize).ok_or(Errno::EINVAL)?;
    if !socket.state().is_full() {
        return Err(Errno::EINVAL);
    }
    if !socket.is_for_maps() {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = network.socket_number(socket).ok_or(Errno::EINVAL)?;
    Ok(match map.spec().value_size {
        4 => Bytes::from_slice(&number.to_ne_bytes()),
        _ => Bytes::from_slice(&u64::from(number).to_ne_bytes()),
    })
}

/// `void *bpf_map_lookup_percpu_elem(map, key, cpu)`: null for a CPU that does not exist.
pub(super) fn lookup_percpu_elem(_: &mut Host, _: &Map, key: Key<'_>, cpu: u32) -> Pointer {
    Pointer(key.look_up(cpu as usize))
}

/// `long bpf_map_update_elem(map, key, value, flags)`
#[inline]
pub(super) fn update_elem(
    host: &mut Host,
    map: &Map,
    key: Key<'_>,
    value: Value<'_>,
    flags: u64,
) -> Result<(), Errno> {
    let update = |value: &[u8]| key.with(|key| map.for_programs().update(key, value, flags, host.cpu()));
    match map.spec().kind.holds_sockets() {
        true => update(&socket_value(map, value.record(), host)?),
        false => value.with(update),
    }
}

/// `long bpf_map_delete_elem(map, key)`
pub(super) fn delete_elem(_: &mut Host, map: &Map, key: Key<'_>) -> Result<(), Errno> {
    key.with(|key| map.for_programs().delete(key))
}

/// `long bpf_map_push_elem(map, value, flags)`
pub(super) fn push_elem(_: &mut Host, map: &Map, value: Value<'_>, flags: u64) -> Result<(), Errno> {
    value.with(|value| map.for_programs().push(value, flags))
}

/// `long bpf_map_pop_elem(map, value)`
pub(super) fn pop_elem(_: &mut Host, map: &Map, value: NextValue<'_>) -> Result<(), Errno> {
    value.fill(|value| map.for_programs().pop(value))
}

/// `long bpf_map_peek_elem(map, value)`: a Bloom filter tests for the value, and does not change it.
pub(super) fn peek_elem(_: &mut Host, map: &Map, value: NextValue<'_>) -> Result<(), Errno> {
    value.fill(|value| map.for_programs().peek(value))
}
