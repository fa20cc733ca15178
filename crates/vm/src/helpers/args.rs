//! From argument registers to what they stand for.

use std::sync::Arc;

use paceline_frame::Frame;
use paceline_maps::Map;

use crate::host::Host;
use crate::memory;

/// The map that a register holds the handle of.
///
/// # Safety
/// The register must hold the handle of a map that lives through the call.
pub(super) unsafe fn map<'a>(register: u64) -> &'a Map {
    // SAFETY: a handle is the address of the map.
    unsafe { &*(register as *const Map) }
}

/// The same, kept as long as the result.
///
/// # Safety
/// As of [`map`].
pub(super) unsafe fn shared_map(register: u64) -> Arc<Map> {
    let map = register as *const Map;
    // SAFETY: the map lives in an `Arc`, whose count now has one more for the result.
    unsafe {
        Arc::increment_strong_count(map);
        Arc::from_raw(map)
    }
}

/// The frame that a context argument stands for, whatever the program's type.
///
/// # Safety
/// The program must run over a packet, and no other reference to its frame may be in use.
pub(super) unsafe fn packet<'a>(host: &Host) -> &'a Frame {
    // SAFETY: a run over a packet holds its frame.
    unsafe { &*host.frame }
}

/// The frame that a context argument of an XDP program stands for.
///
/// # Safety
/// The register must hold the context of a running XDP program with a packet, and no other reference to its frame may
/// be in use.
pub(super) unsafe fn frame<'a>(register: u64) -> &'a mut Frame {
    // SAFETY: the context of a program with a packet is its frame.
    unsafe { &mut *(register as *mut Frame) }
}

/// The bytes a register points to, copied: other workers may be changing them, if they are a map value.
///
/// # Safety
/// `len` bytes at the address must be readable.
pub(super) unsafe fn bytes(register: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the caller vouches for the range.
    unsafe { memory::copy_from(&mut bytes, register) };
    bytes
}

/// Keys up to this many bytes are copied without memory of the heap.
const SHORT: usize = 64;

/// A copy of a key.
pub(super) struct Key {
    short: [u8; SHORT],
    long: Vec<u8>,
    len: usize,
}

impl std::ops::Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.short.get(..self.len).unwrap_or(&self.long)
    }
}

/// The key of a map that a register points to.
///
/// # Safety
/// As many bytes as a key of the map has must be readable at the address.
pub(super) unsafe fn key(map: &Map, register: u64) -> Key {
    let len = map.spec().key_size as usize;
    let mut key = Key { short: [0; SHORT], long: Vec::new(), len };
    match key.short.get_mut(..len) {
        // SAFETY: the caller vouches for the range.
        Some(short) => unsafe { memory::copy_from(short, register) },
        // SAFETY: the same.
        None => key.long = unsafe { bytes(register, len) },
    }
    key
}

/// The bytes a register points to, and nothing at null.
///
/// # Safety
/// `len` bytes at the address must be readable, unless it is null.
pub(super) unsafe fn bytes_or_null(register: u64, len: usize) -> Vec<u8> {
    if register == 0 {
        return Vec::new();
    }
    // SAFETY: the caller vouches for the range.
    unsafe { bytes(register, len) }
}

/// The text a register points to, with its zero byte.
///
/// # Safety
/// All bytes up to the first that is zero must be readable.
pub(super) unsafe fn text(register: u64) -> Vec<u8> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        // SAFETY: no byte before was the last.
        unsafe { memory::copy_from(&mut byte, register + text.len() as u64) };
        text.push(byte[0]);
        if byte == [0] {
            return text;
        }
    }
}
