//! Parameters that are maps, and keys and values of the map in the first argument.

use std::sync::Arc;

use paceline_maps::{LookupFunction, Map};

use super::argument::{Argument, Object, Registers};
use super::class::Class;
use super::mem::Mem;

// SAFETY: the handle of a map is the address of the map, which lives through the call.
unsafe impl<'a> Argument<'a> for &'a Map {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::MAP]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the register holds the handle of a map.
        unsafe { map(registers[index]) }
    }
}

/// The map of a handle.
///
/// # Safety
/// The register must hold the handle of a map that lives through `'a`.
#[inline(always)]
unsafe fn map<'a>(register: u64) -> &'a Map {
    // SAFETY: a handle is the address of the map.
    unsafe { &*(register as *const Map) }
}

// SAFETY: as above; the map lives in an `Arc`.
unsafe impl Argument<'_> for Arc<Map> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::MAP]];

    unsafe fn from_registers(registers: &Registers, index: usize) -> Self {
        let map = registers[index] as *const Map;
        // SAFETY: the register holds the handle of a map, which lives in an `Arc`, whose count now has one more for the result.
        unsafe {
            Self::increment_strong_count(map);
            Self::from_raw(map)
        }
    }
}

/// Pointer to a key of the map in the first argument.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    map: &'a Map,
    address: u64,
}

// SAFETY: the key has as many bytes as the map's keys, which can be read during the call.
unsafe impl<'a> Argument<'a> for Key<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::MAP_KEY]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the map in the first register is guaranteed by the caller.
        Self { map: unsafe { map(registers[0]) }, address: registers[index] }
    }
}

impl Key<'_> {
    /// As of [`Mem::with`].
    #[inline]
    pub(super) fn with<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: as many bytes as a key of the map has can be read.
        unsafe { Mem::new(self.address, self.map.spec().key_size as usize) }.with(take)
    }

    /// The address of the value for a CPU, or null. Kinds with a function for it read the key in place.
    #[inline(always)]
    pub(super) fn look_up(&self, cpu: usize) -> u64 {
        let map = self.map.for_programs();
        if let Some(LookupFunction { function, context, .. }) = map.lookup_function() {
            // SAFETY: the map is in use by the caller, and the key has as many bytes as the map's keys.
            return unsafe { function(context, self.address, cpu as u64) };
        }
        self.with(|key| map.lookup(key, cpu).map_or(0, |value| value.as_ptr() as u64))
    }
}

/// Pointer to a value of the map in the first argument; to the record of a socket for maps of sockets.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    map: &'a Map,
    address: u64,
}

// SAFETY: the value has as many bytes as the map's values, which can be read during the call.
unsafe impl<'a> Argument<'a> for Value<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::MAP_VALUE]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the map in the first register is guaranteed by the caller.
        Self { map: unsafe { map(registers[0]) }, address: registers[index] }
    }
}

impl Value<'_> {
    /// As of [`Mem::with`]; empty for maps of sockets, whose values programs cannot read.
    #[inline]
    pub(super) fn with<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        let spec = self.map.spec();
        let len = if spec.kind.holds_sockets() { 0 } else { spec.value_size as usize };
        // SAFETY: a value of the map can be read.
        unsafe { Mem::new(self.address, len) }.with(take)
    }

    /// Address of the record, for maps of sockets.
    pub(super) fn record(&self) -> Object {
        Object(self.address)
    }
}

/// Pointer to memory for a value of the map in the first argument; to the value that is looked for in a Bloom filter.
#[derive(Clone, Copy)]
pub(super) struct NextValue<'a> {
    map: &'a Map,
    address: u64,
}

// SAFETY: the value has as many bytes as the map's values, which can be written, or read for a Bloom filter, during the call.
unsafe impl<'a> Argument<'a> for NextValue<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::NEXT_VALUE]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the map in the first register is guaranteed by the caller.
        Self { map: unsafe { map(registers[0]) }, address: registers[index] }
    }
}

impl NextValue<'_> {
    /// Runs `fill` on a value: on a copy of the value that is looked for in a Bloom filter, otherwise on zeros, which
    /// are written to the program's memory afterwards whatever the result is, as in the kernel.
    pub(super) fn fill<R>(&self, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let spec = self.map.spec();
        // SAFETY: a value of the map can be written, and read for a Bloom filter.
        let mem = unsafe { Mem::new(self.address, spec.value_size as usize) };
        const SHORT: usize = 64;
        let (mut short, mut long);
        let value = match mem.len() <= SHORT {
            true => {
                short = [0; SHORT];
                &mut short[..mem.len()]
            }
            false => {
                long = vec![0; mem.len()];
                &mut long[..]
            }
        };
        if spec.kind.tests_membership() {
            mem.copy_to(value);
            return fill(value);
        }
        let result = fill(value);
        mem.write(value);
        result
    }
}
