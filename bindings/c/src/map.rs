//! Maps: by bytes, by JSON with the types of their object, and the records of ring buffers.

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::time::Duration;

use paceline::json::{ElementError, JsonMap};
use paceline::{BatchError, Errno, Map};
use serde_json::Value as Json;

use crate::c_string::c_string;
use crate::call;
use crate::handles::Table;
use crate::object::paceline_map_info;
use crate::opaque::paceline_map;
use crate::raw::{Bytes, Callback, Data, Filled, Out, Room, Text, paceline_bytes_function};
use crate::status::{Failure, Report, paceline_status};
use crate::text;
use crate::told::ErrorOut;

/// A map with its name as a string of C, and its types if it is an object's.
pub(crate) struct Held {
    map: Arc<Map>,
    typed: Option<JsonMap>,
    name: CString,
}

pub(crate) static MAPS: Table<Arc<Held>, paceline_map> = Table::new();

impl Held {
    pub(crate) fn give(typed: JsonMap) -> Result<*mut paceline_map, Failure> {
        let map = Arc::clone(typed.map());
        let name = c_string(&map.spec().name);
        MAPS.give(Arc::new(Self { map, typed: Some(typed), name }))
    }

    pub(crate) fn give_plain(map: Arc<Map>) -> Result<*mut paceline_map, Failure> {
        let name = c_string(&map.spec().name);
        MAPS.give(Arc::new(Self { map, typed: None, name }))
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    fn refused(&self, errno: Errno) -> Failure {
        Failure::of_map(&self.map.spec().name, errno)
    }

    fn typed(&self) -> Result<&JsonMap, Failure> {
        let untyped = || Failure::new(paceline_status::Unsupported, "an inner map has no types of an object");
        self.typed.as_ref().ok_or_else(untyped)
    }

    fn sizes(&self) -> (usize, usize) {
        (self.map.spec().key_size as usize, self.map.user_value_size())
    }
}

/// Frees a handle of a map. The map stays as long as its collection, its programs or other handles. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_free(map: *mut paceline_map) -> paceline_status {
    call::plain_status(|| MAPS.free(map))
}

/// Properties of a map, with its number and the bytes of a value.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_read_info(
    map: *const paceline_map,
    info: Filled<paceline_map_info>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let map = held.map();
        info.write(paceline_map_info::new(&held.name, map.spec(), map.id(), map.user_value_size()))
    })
}

/// Copies the value of a key. `value` has room for the `user_value_size` of the map's info. PACELINE_STATUS_NOT_FOUND without an
/// element.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_lookup(
    map: *const paceline_map,
    key: Bytes,
    key_length: usize,
    value: Room,
    value_capacity: usize,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let found = held.map().lookup(key.slice(key_length)?).map_err(|errno| held.refused(errno))?;
        value.write(value_capacity, &found)
    })
}

/// Sets the value of a key, with the flags of BPF_MAP_UPDATE_ELEM (0: whether there is one or not).
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_update(
    map: *const paceline_map,
    key: Bytes,
    key_length: usize,
    value: Bytes,
    value_length: usize,
    flags: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let (key, value) = (key.slice(key_length)?, value.slice(value_length)?);
        held.map().update_raw(key, value, flags).map_err(|errno| held.refused(errno))
    })
}

/// Removes the element of a key. PACELINE_STATUS_NOT_FOUND without one.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_delete(
    map: *const paceline_map,
    key: Bytes,
    key_length: usize,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        held.map().delete(key.slice(key_length)?).map_err(|errno| held.refused(errno))
    })
}

/// Copies the key after a key: the first one if `key` is null or not there. `next` has room for a key. PACELINE_STATUS_NOT_FOUND after
/// the last.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_next_key(
    map: *const paceline_map,
    key: Bytes,
    key_length: usize,
    next: Room,
    next_capacity: usize,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let after = if key.address() == 0 { None } else { Some(key.slice(key_length)?) };
        let found = held.map().next_key(after).map_err(|errno| held.refused(errno))?;
        next.write(next_capacity, &found)
    })
}

/// Copies elements, keys and values each in a row: at most `capacity`, for which there must be room; `count` gets their number. Those
/// that are removed meanwhile are left out.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_read(
    map: *const paceline_map,
    keys: Room,
    values: Room,
    capacity: usize,
    count: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let elements = held.map().elements().map_err(|errno| held.refused(errno))?;
        count.write(copy(held.sizes(), elements, keys, values, capacity)?);
        Ok(())
    })
}

/// As paceline_map_read, and each element is removed in the same step, so that no update of a program is lost. Others stay: call it again
/// if there were as many as `capacity`.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_drain(
    map: *const paceline_map,
    keys: Room,
    values: Room,
    capacity: usize,
    count: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let elements = held.map().drain().map_err(|errno| held.refused(errno))?;
        count.write(copy(held.sizes(), elements, keys, values, capacity)?);
        Ok(())
    })
}

/// Copies elements, and gives their number.
fn copy(
    (key_size, value_size): (usize, usize),
    elements: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    keys: Room,
    values: Room,
    capacity: usize,
) -> Result<usize, Failure> {
    let room = |size: usize| size.checked_mul(capacity).ok_or_else(|| Failure::argument("too many elements"));
    let (key_room, value_room) = (room(key_size)?, room(value_size)?);
    // Before an element is taken, which would be lost.
    keys.check(key_room)?;
    values.check(value_room)?;
    let mut count = 0;
    for (key, value) in elements.take(capacity) {
        keys.write_at(count * key_size, key_room, &key)?;
        values.write_at(count * value_size, value_room, &value)?;
        count += 1;
    }
    Ok(count)
}

/// Sets `count` elements, keys and values each in a row, one after the other until one is refused; `done` gets the number before it.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_update_batch(
    map: *const paceline_map,
    keys: Bytes,
    values: Bytes,
    count: usize,
    flags: u64,
    done: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        done.write(0);
        let held = MAPS.get(map)?;
        let (key_size, value_size) = held.sizes();
        let keys = rows(&keys, key_size, count)?;
        let values = rows(&values, value_size, count)?;
        batch(&held, done, held.map().update_batch(keys.zip(values), flags))
    })
}

/// Removes `count` elements, keys in a row, one after the other until one is refused; `done` gets the number before it.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_delete_batch(
    map: *const paceline_map,
    keys: Bytes,
    count: usize,
    done: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        done.write(0);
        let held = MAPS.get(map)?;
        let keys = rows(&keys, held.sizes().0, count)?;
        batch(&held, done, held.map().delete_batch(keys))
    })
}

/// So many rows of a size.
fn rows(bytes: &Bytes, size: usize, count: usize) -> Result<impl Iterator<Item = &[u8]>, Failure> {
    let length = size.checked_mul(count).ok_or_else(|| Failure::argument("too many elements"))?;
    // Of a size of 0 there are as many as are asked for.
    let slice = bytes.slice(length)?;
    Ok((0..count).map(move |row| slice.get(row * size..(row + 1) * size).unwrap_or_default()))
}

fn batch(held: &Held, done: Out<usize>, result: Result<usize, BatchError>) -> Result<(), Failure> {
    let (count, failure) = match result {
        Ok(count) => (count, None),
        Err(error) => (error.done, Some(held.refused(error.errno).at(error.done))),
    };
    done.write(count);
    failure.map_or(Ok(()), Err)
}

/// Adds a value to a queue, a stack or a Bloom filter.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_push(
    map: *const paceline_map,
    value: Bytes,
    value_length: usize,
    flags: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        held.map().push(value.slice(value_length)?, flags).map_err(|errno| held.refused(errno))
    })
}

/// Takes the next value of a queue or stack. PACELINE_STATUS_NOT_FOUND if it is empty.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_pop(
    map: *const paceline_map,
    value: Room,
    value_capacity: usize,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        // Before it is taken: what does not fit would be lost.
        let size = held.map().spec().value_size as usize;
        if size > value_capacity {
            return Err(Failure::new(
                paceline_status::NoRoom,
                format!("a value has {size} bytes, there is room for {value_capacity}"),
            ));
        }
        let taken = held.map().pop().map_err(|errno| held.refused(errno))?;
        value.write(value_capacity, &taken)
    })
}

/// Keeps the caller from changing the map from now on (BPF_MAP_FREEZE); programs still can.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_freeze(map: *const paceline_map, error: ErrorOut) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        held.map().freeze().map_err(|errno| held.refused(errno))
    })
}

fn json(text: &Text, what: &str) -> Result<Json, Failure> {
    let text = text.required(what)?;
    serde_json::from_str(text).map_err(|error| Failure::argument(format!("{what} is no JSON: {error}")))
}

fn of_element(error: &ElementError) -> Failure {
    let (status, map, errno) = match error {
        ElementError::Refused { map, errno } => (paceline_status::Map, map, errno.0),
        ElementError::Key { map, .. } | ElementError::Value { map, .. } => {
            (paceline_status::Argument, map, 0)
        }
        _ => return Failure::of(paceline_status::Map, &error),
    };
    Failure::told(Report {
        status: Some(status),
        message: paceline::with_causes(&error),
        map: Some(map.clone()),
        error_number: errno.into(),
        ..Report::default()
    })
}

/// The value of a key, both as JSON by the types of the object: {"port": 22, "protocol": 6}. In per-CPU kinds a value is a list. Free the
/// text with paceline_string_free. Null without an element, where `error` gets null, and on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_lookup_json(
    map: *const paceline_map,
    key: Text,
    error: ErrorOut,
) -> *mut c_char {
    call::value(error, std::ptr::null_mut(), || {
        let held = MAPS.get(map)?;
        let found = held.typed()?.lookup(&json(&key, "the key")?).map_err(|error| of_element(&error))?;
        Ok(text::give(&found.ok_or(Failure::NOT_FOUND)?.to_string()))
    })
}

/// Sets the value of a key, both as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_update_json(
    map: *const paceline_map,
    key: Text,
    value: Text,
    flags: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let (key, value) = (json(&key, "the key")?, json(&value, "the value")?);
        held.typed()?.update_raw(&key, &value, flags).map_err(|error| of_element(&error))
    })
}

/// Removes the element of a key in JSON. PACELINE_STATUS_NOT_FOUND without one.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_delete_json(
    map: *const paceline_map,
    key: Text,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let was = held.typed()?.delete(&json(&key, "the key")?).map_err(|error| of_element(&error))?;
        if was { Ok(()) } else { Err(Failure::NOT_FOUND) }
    })
}

/// All elements as JSON: [{"key": ..., "value": ...}, ...]. Free the text with paceline_string_free. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_read_json(map: *const paceline_map, error: ErrorOut) -> *mut c_char {
    call::value(error, std::ptr::null_mut(), || {
        let held = MAPS.get(map)?;
        let elements = held.typed()?.iter().map_err(|error| of_element(&error))?;
        let element = |(key, value): (Json, Json)| serde_json::json!({"key": key, "value": value});
        Ok(text::give(&elements.map(element).collect::<Json>().to_string()))
    })
}

/// Calls a function for each record that programs submitted to a ring buffer, up to the first that a program still holds; `count` gets
/// their number. A record is gone from the ring before the function is called, which may use the map.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_consume(
    map: *const paceline_map,
    function: paceline_bytes_function,
    data: Data,
    count: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let ring = held.map().ring_buffer().ok_or_else(|| no_ring(&held))?;
        if function.is_none() {
            return Err(Failure::argument("the function is null"));
        }
        let callback = Callback::new(function, data);
        count.write(ring.consume(|record| callback.call(record)));
        Ok(())
    })
}

/// Waits until a ring buffer has a record to read, or a program wakes the reader, for at most so many milliseconds.
/// PACELINE_STATUS_NOT_FOUND if neither happened.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_wait(
    map: *const paceline_map,
    milliseconds: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = MAPS.get(map)?;
        let ring = held.map().ring_buffer().ok_or_else(|| no_ring(&held))?;
        if ring.wait(Duration::from_millis(milliseconds)) { Ok(()) } else { Err(Failure::NOT_FOUND) }
    })
}

/// Number of records that found no room in a ring buffer; 0 for other kinds.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_map_lost(map: *const paceline_map) -> u64 {
    call::plain(0, || {
        let held = MAPS.get(map)?;
        Ok(held.map().ring_buffer().map_or(0, |ring| ring.lost()))
    })
}

fn no_ring(held: &Held) -> Failure {
    Failure::argument(format!("map {} is no ring buffer", held.map().spec().name))
}
