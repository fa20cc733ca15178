//! Longest-prefix maps (`kernel/bpf/lpm_trie.c`). A key is `struct bpf_lpm_trie_key`: the length of a prefix in bits,
//! 32 bits in native order, then the bytes whose first bits it counts.
//!
//! One hash table holds all prefixes, each under its length and its bytes with the rest masked out. IPv4 addresses are looked
//! up in a trie beside it ([`crate::routes`]); other keys, and shorter ones, by probing the table for every length in use,
//! the longest first.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_spec::{Errno, MapFlags};

use crate::create::{ACCESS, CreateErrorKind, NUMA_NODE, Request};
use crate::fill::Fill;
use crate::lookup::LookupFunction;
use crate::map_ops::{Batches, KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::routes::{Ahead, Prefix, Routes};
use crate::slots::Caller;
use crate::table::{Spare, Table, TableShape};
use crate::walks::{AheadFunction, State, Walk, Walks};
use crate::words;

/// Bytes of a key before its data.
const PREFIX_LEN: usize = 4;
/// `LPM_DATA_SIZE_MAX`
const MAX_DATA: u32 = 256;
/// `LPM_VAL_SIZE_MAX`: `KMALLOC_MAX_SIZE` less the data and `struct lpm_trie_node`.
const MAX_VALUE: u32 = (4 << 20) - MAX_DATA - 24;

/// `BPF_MAP_TYPE_LPM_TRIE`; the payload of a slot is the value, then the data as it was given, unmasked.
pub(crate) struct LpmTrie {
    table: Table,
    value_size: usize,
    data_size: usize,
    lengths: Lengths,
    /// The prefixes of keys with four bytes of data.
    routes: Option<Routes>,
}

/// Bytes of data that are an IPv4 address.
const ADDRESS: usize = 4;

impl LpmTrie {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_entries()?;
        request.check_flags(NUMA_NODE | ACCESS | MapFlags::NO_PREALLOC)?;
        request.check_has_flag(MapFlags::NO_PREALLOC)?;
        request.check_key_between(PREFIX_LEN as u32 + 1, PREFIX_LEN as u32 + MAX_DATA)?;
        request.check_value_at_most(MAX_VALUE)?;
        let (value_size, data_size) = (request.value_size(), request.key_size() - PREFIX_LEN);
        let payload_words = words::words_for(value_size) + words::words_for(data_size);
        let shape = TableShape::of(request, payload_words);
        let entries = request.spec.max_entries;
        let is_address = data_size == ADDRESS;
        let beside = if is_address { Routes::bytes(entries) } else { 0 };
        request.check_memory(shape.bytes(0).and_then(|bytes| bytes.checked_add(beside)))?;
        let routes = is_address.then(|| Routes::new(entries)).transpose()?;
        let lengths = Lengths::new(data_size * 8);
        Ok(Box::new(Self { table: Table::new(shape, 0)?, value_size, data_size, lengths, routes }))
    }

    /// The slot of the longest prefix of an address.
    #[inline(always)]
    fn route(&self, key: u64) -> Option<u32> {
        let [a, b, c, d, address @ ..] = key.to_ne_bytes();
        match &self.routes {
            Some(routes) if u32::from_ne_bytes([a, b, c, d]) == u32::BITS => {
                routes.find(u32::from_be_bytes(address))
            }
            _ => self.longest(&key.to_ne_bytes(), |slot| slot),
        }
    }

    /// The trie, and the address that a key of 8 bytes looks up there.
    #[inline(always)]
    fn route_of(&self, key: u64) -> Option<(&Routes, u32)> {
        let [length, address] = words::halves_of(key);
        let routes = self.routes.as_ref().filter(|_| u32::from_ne_bytes(length) == u32::BITS);
        routes.map(|routes| (routes, u32::from_be_bytes(address)))
    }

    /// Puts a slot into the trie for all addresses that begin as a key does and have no longer prefix.
    fn add_route(&self, key: &[u8], length: usize, slot: u32) -> Result<(), Errno> {
        let Some((routes, address)) = self.routes_of(key) else { return Ok(()) };
        routes.change(address, length as u32, &|found| match found {
            Some(other) if self.length_of_slot(other) > length => Some(other),
            _ => Some(slot),
        })
    }

    /// Takes a slot out of the trie: its addresses have the next shorter prefix then.
    fn remove_route(&self, key: &[u8], length: usize, slot: u32) {
        if let Some((routes, address)) = self.routes_of(key) {
            let prefix = |slot| Prefix { slot, length: self.length_of_slot(slot) as u32 };
            let shorter = length.checked_sub(1).and_then(|length| self.longest_up_to(key, length, prefix));
            routes.replace(address, Prefix { slot, length: length as u32 }, shorter);
        }
    }

    /// The trie, if there is one, and the address that a key begins with.
    fn routes_of(&self, key: &[u8]) -> Option<(&Routes, u32)> {
        let address = key.get(PREFIX_LEN..)?.try_into().ok().map(u32::from_be_bytes);
        self.routes.as_ref().zip(address)
    }

    fn length_of_slot(&self, slot: u32) -> usize {
        self.table.first_half_word_of_key(slot) as usize
    }

    /// The prefix length of a key, where it is in range.
    fn length_of(&self, key: &[u8]) -> Option<usize> {
        let length = u32::from_ne_bytes(*key.first_chunk()?) as usize;
        (length <= self.data_size * 8).then_some(length)
    }

    /// Looks at the slot with the longest prefix of a key.
    fn longest<T>(&self, key: &[u8], look: impl FnOnce(u32) -> T) -> Option<T> {
        self.longest_up_to(key, self.length_of(key)?, look)
    }

    fn longest_up_to<T>(&self, key: &[u8], length: usize, look: impl FnOnce(u32) -> T) -> Option<T> {
        let mut probe = Probe::new(key, length)?;
        let mut longest = probe.length;
        loop {
            longest = self.lengths.at_most(longest)?;
            probe.shorten(longest);
            if let Some(slot) = self.table.find(probe.key()) {
                return Some(look(slot));
            }
            longest = longest.checked_sub(1)?;
        }
    }

    /// A full map is `ENOSPC` here, and a prefix longer than the data `EINVAL`.
    fn put(&self, key: &[u8], value: &[u8], mode: UpdateMode, caller: Caller) -> Result<(), Errno> {
        let length = self.length_of(key).ok_or(Errno::EINVAL)?;
        let probe = Probe::new(key, length).ok_or(Errno::EINVAL)?;
        let mut spare = self.table.spare(probe.key(), caller)?;
        let (to_value, to_data) =
            self.table.payload(spare.slot()).split_at(words::words_for(self.value_size));
        words::fill(to_value, value);
        words::fill(to_data, key.get(PREFIX_LEN..).unwrap_or_default());
        loop {
            let linked = self.link(&probe, &mut spare, mode);
            // User space lets workers run until they are done with nodes of the trie; no lock is held.
            let waits = linked == Err(Errno::ENOMEM) && caller == Caller::User;
            if !(waits && self.routes.as_ref().is_some_and(Routes::wait)) {
                return linked;
            }
        }
    }

    /// Lets look-ups find a slot that is written. After `ENOMEM` the slot can be used again.
    fn link(&self, probe: &Probe, spare: &mut Spare<'_>, mode: UpdateMode) -> Result<(), Errno> {
        let length = probe.length;
        let mut lengths = self.lengths.lock();
        let mut entry = self.table.lock(probe.key());
        let is_new = entry.slot().is_none();
        mode.check(!is_new)?;
        // First: workers may find the slot as soon as it is in the trie, and then it can no more be given back at once.
        let mut permit = if is_new { Some(self.table.permit().ok_or(Errno::ENOSPC)?) } else { None };
        // Before its old slot may be given to another prefix.
        self.add_route(probe.key(), length, spare.slot())?;
        entry.put(spare, &mut permit)?;
        if is_new {
            lengths.add(length);
        }
        Ok(())
    }

    fn append_key(&self, slot: u32, out: &mut Vec<u8>) {
        let payload = self.table.payload(slot);
        self.table.append_key_start(slot, PREFIX_LEN, out);
        let data = payload.get(words::words_for(self.value_size)..).unwrap_or_default();
        words::append(out, data, self.data_size);
    }
}

/// A key being made shorter.
struct Probe {
    bytes: [u8; PREFIX_LEN + MAX_DATA as usize],
    size: usize,
    length: usize,
}

impl Probe {
    /// The key with the bits beyond its length cleared.
    fn new(key: &[u8], length: usize) -> Option<Self> {
        let mut bytes = [0; PREFIX_LEN + MAX_DATA as usize];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        let mut probe = Self { bytes, size: key.len(), length };
        probe.shorten(length);
        Some(probe)
    }

    fn key(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    fn shorten(&mut self, length: usize) {
        let (prefix, data) = self.bytes[..self.size].split_at_mut(PREFIX_LEN);
        prefix.copy_from_slice(&(length as u32).to_ne_bytes());
        let whole = length / 8;
        if let Some(partial) = data.get_mut(whole) {
            *partial &= !(0xff >> (length % 8));
        }
        if let Some(rest) = data.get_mut(whole + 1..) {
            rest.fill(0);
        }
        self.length = length;
    }
}

/// Prefix lengths in use: a bit for each, and how many prefixes have it.
struct Lengths {
    bits: Box<[AtomicU64]>,
    counts: Mutex<Box<[u32]>>,
}

impl Lengths {
    fn new(longest: usize) -> Self {
        let bits = (0..=longest / 64).map(|_| AtomicU64::new(0)).collect();
        Self { bits, counts: Mutex::new(vec![0; longest + 1].into_boxed_slice()) }
    }

    /// The longest length in use up to this one.
    fn at_most(&self, length: usize) -> Option<usize> {
        let mut keep = u64::MAX >> (63 - length % 64);
        for index in (0..=length / 64).rev() {
            let bits = self.bits.get(index)?.load(Ordering::Acquire) & keep;
            if bits != 0 {
                return Some(index * 64 + 63 - bits.leading_zeros() as usize);
            }
            keep = u64::MAX;
        }
        None
    }

    /// Keeps changes apart: a length is in use before a look-up can need it, and until none can.
    fn lock(&self) -> Changes<'_> {
        Changes { lengths: self, counts: self.counts.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

struct Changes<'a> {
    lengths: &'a Lengths,
    counts: MutexGuard<'a, Box<[u32]>>,
}

impl Changes<'_> {
    fn add(&mut self, length: usize) {
        if let Some(count) = self.counts.get_mut(length) {
            *count += 1;
            self.lengths.bits[length / 64].fetch_or(1 << (length % 64), Ordering::Release);
        }
    }

    fn take(&mut self, length: usize) {
        if let Some(count) = self.counts.get_mut(length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.bits[length / 64].fetch_and(!(1 << (length % 64)), Ordering::Release);
            }
        }
    }
}

impl MapOps for LpmTrie {
    fn batches(&self) -> Batches {
        Batches::Delete
    }

    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        let slot = match key.try_into() {
            Ok(key) => self.route(u64::from_ne_bytes(key)),
            Err(_) => self.longest(key, |slot| slot),
        };
        self.table.payload_address(slot?)
    }

    fn lookup_function(&self) -> Option<LookupFunction> {
        let context = std::ptr::from_ref(self) as u64;
        self.routes.as_ref().map(|_| LookupFunction {
            function: find_route,
            by_word: Some(find_route_by_word),
            context,
            takes_cpu: false,
        })
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        self.routes.as_ref().map(|_| AheadFunction::new(self, route_ahead, true))
    }

    fn look_up_bytes(&self, fill: Fill) -> u64 {
        // Look-ups of addresses do not touch the index, and the trie has up to as many lines as there are prefixes.
        self.table.slot_bytes(fill)
    }

    fn frees_values(&self) -> bool {
        true
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        self.put(key, value, UpdateMode::from_flags(flags)?, Caller::Worker)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.table.payload_holds(address, len, self.value_size)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let copy = |slot| words::append(out, self.table.payload(slot), self.value_size);
        // No prefix comes or goes meanwhile.
        let _lengths = self.lengths.lock();
        self.longest(key, copy).ok_or(Errno::ENOENT)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        self.put(key, value, mode, Caller::User)
    }

    fn matching_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.longest(key, |slot| {
            let mut key = Vec::new();
            self.append_key(slot, &mut key);
            key
        })
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let length = self.length_of(key).ok_or(Errno::EINVAL)?;
        let probe = Probe::new(key, length).ok_or(Errno::EINVAL)?;
        let mut lengths = self.lengths.lock();
        let slot = self.table.inspect(probe.key(), |slot| slot).ok_or(Errno::ENOENT)?;
        self.remove_route(probe.key(), length, slot);
        self.table.lock(probe.key()).remove();
        lengths.take(length);
        Ok(())
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.table)
    }

    /// The bytes that user space wrote are in the payload; those of the table are masked.
    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.table.visit(part, |slot| self.append_key(slot, out))
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        let after = after.and_then(|key| Probe::new(key, self.length_of(key)?));
        let copy = |slot| {
            let mut key = Vec::new();
            self.append_key(slot, &mut key);
            key
        };
        self.table.next(after.as_ref().map(Probe::key), copy)
    }
}

/// # Safety
/// See [`LookupFunction::function`]; keys have 8 bytes.
unsafe extern "C" fn find_route(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the key, and below the context, are guaranteed by the caller.
    let [key] = unsafe { words::load_words::<1>(key) };
    // SAFETY: as said.
    unsafe { find_route_by_word(context, key, cpu) }
}

/// # Safety
/// See [`LookupFunction::by_word`]; keys have 8 bytes.
unsafe extern "C" fn find_route_by_word(context: u64, key: u64, _cpu: u64) -> u64 {
    // SAFETY: the context is guaranteed by the caller.
    let map = unsafe { &*(context as *const LpmTrie) };
    map.route(key).and_then(|slot| map.table.payload_address(slot)).map_or(0, |value| value.as_ptr() as u64)
}

/// # Safety
/// See [`AheadFunction::function`]; the key is a value of 8 bytes.
unsafe extern "C" fn route_ahead(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: both are guaranteed by the caller.
    let (map, walks) = unsafe { (&*(context as *const LpmTrie), &mut *(walks as *mut Walks)) };
    if let Some((routes, address)) = map.route_of(key) {
        routes.ahead(address);
        walks.push(Walk { step: along_route, map: context, state: State::Address(address) });
    }
    0
}

/// From line to line of a trie, and to the prefix.
///
/// # Safety
/// See [`Step`].
unsafe fn along_route(map: u64, state: State, _cpu: usize) -> Option<State> {
    // SAFETY: the map is guaranteed by the caller.
    let map = unsafe { &*(map as *const LpmTrie) };
    let routes = map.routes.as_ref()?;
    let next = match state {
        State::Address(address) => routes.ahead_of_root(address),
        State::Route(ahead) => routes.ahead_of_line(ahead),
        State::Hash(_) => None,
    };
    match next? {
        Ahead::Slot(slot) => {
            map.table.prefetch_slot(slot);
            None
        }
        ahead => Some(State::Route(ahead)),
    }
}

#[cfg(test)]
mod tests {
    use super::Lengths;

    #[test]
    fn a_length_is_in_use_while_a_prefix_has_it() {
        let lengths = Lengths::new(128);
        let mut changes = lengths.lock();
        for length in [0, 63, 64, 128] {
            assert_eq!(lengths.at_most(128), None);
            changes.add(length);
            changes.add(length);
            changes.take(length);
            assert_eq!(lengths.at_most(128), Some(length));
            assert_eq!(lengths.at_most(length), Some(length));
            assert_eq!(length.checked_sub(1).and_then(|shorter| lengths.at_most(shorter)), None);
            changes.take(length);
        }
        assert_eq!(lengths.at_most(128), None);
    }
}
