//! The side of programs: the helpers on elements, and the facts that engines ask for.

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::Arc;

use paceline_spec::{Errno, MapFlags};

use super::base::Map;
use super::user::Keys;
use crate::cpu_owners::CpuOwners;
use crate::fill::Fill;
use crate::lookup::LookupFunction;
use crate::map_ops::{ArrayLayout, KeySpace};
use crate::mode::LOCK;
use crate::prog_array::{Owner, ProgArray};
use crate::ringbuf::RingBuffer;
use crate::walks::AheadFunction;

/// Access of programs to the values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramAccess {
    /// Load from them: all maps but those with `BPF_F_WRONLY_PROG`.
    pub read: bool,
    /// Store to them, and update and delete elements: all maps but those with `BPF_F_RDONLY_PROG`, and
    /// socket maps.
    pub write: bool,
}

impl Map {
    /// The map as programs see it.
    #[inline]
    #[must_use]
    pub fn for_programs(&self) -> ProgramSide<'_> {
        ProgramSide(self)
    }
}

/// A map as programs see it, from [`Map::for_programs`]: the semantics of the helpers, on one CPU, with addresses of values.
#[derive(Clone, Copy)]
pub struct ProgramSide<'a>(&'a Map);

impl std::fmt::Debug for ProgramSide<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramSide").finish_non_exhaustive()
    }
}

impl<'a> ProgramSide<'a> {
    /// Access of programs to the values.
    #[inline]
    #[must_use]
    pub fn access(self) -> ProgramAccess {
        let flags = self.0.spec.flags;
        ProgramAccess { read: !flags.contains(MapFlags::WRONLY_PROG), write: self.0.programs_may_write }
    }

    /// The address `offset` bytes into the only value of an array of one entry: global data (`BPF_PSEUDO_MAP_VALUE`).
    ///
    /// # Errors
    /// `ENOTSUPP`: another kind, or more than one entry. `EINVAL`: the offset lies outside the value.
    pub fn direct_value(self, offset: u32) -> Result<NonNull<u8>, Errno> {
        self.0.storage.direct_value(offset)
    }

    /// The key of the element whose value starts at an address.
    #[must_use]
    pub fn key_at(self, value: u64) -> Option<Vec<u8>> {
        self.0.key_at(value as usize)
    }

    /// The key of the element that a look-up of a key finds in a longest-prefix trie; `None` where it finds none, and in other kinds.
    #[must_use]
    pub fn matching_key(self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.storage.matching_key(key)
    }

    /// The place of the values, for code that indexes arrays itself; `None` for kinds that are no arrays of values.
    #[must_use]
    pub fn array_layout(self) -> Option<ArrayLayout> {
        self.0.storage.array_layout()
    }

    /// The map as a ring buffer, for the `bpf_ringbuf_` helpers.
    #[must_use]
    pub fn ring_buffer(self) -> Option<&'a RingBuffer> {
        self.0.storage.ring_buffer()
    }

    /// Sets an entry of a program array (`BPF_MAP_UPDATE_ELEM`), by the engine that knows the program: its number, the engine's token,
    /// and an owner that keeps it alive as long as the entry names it.
    ///
    /// # Errors
    /// `ENOTSUPP`: another kind. `EPERM`: user space may not write, or the map is frozen. `E2BIG`: no such entry.
    ///
    /// # Safety
    /// The engine whose programs use this map trusts tokens, possibly as addresses to jump to: the token must be valid until
    /// `owner` is dropped, and dropping `owner` must wait for those who read the token before.
    pub unsafe fn install_program(
        self,
        index: u32,
        program: u32,
        token: NonZeroU64,
        owner: Owner,
    ) -> Result<(), Errno> {
        let array = self.prog_array().ok_or(Errno::ENOTSUPP)?;
        let _writing = self.0.user_write()?;
        array.install(index as usize, program, token, owner)
    }

    /// The map as a program array, for `bpf_tail_call`.
    #[inline]
    #[must_use]
    pub fn prog_array(self) -> Option<&'a ProgArray> {
        self.0.storage.prog_array()
    }

    /// The workers that the CPUs of the map belong to; `None` if it has no values of CPUs. A map of per-CPU maps stands for these.
    #[must_use]
    pub fn cpu_owners(self) -> Option<&'a Arc<CpuOwners>> {
        self.0.cpu_owners.as_ref()
    }

    /// Whether an address is that of the `bpf_timer` in a value of this map.
    #[must_use]
    pub fn is_timer(self, address: usize) -> bool {
        self.0.timers().is_some_and(|timers| self.0.offset_in_value(address) == Some(timers.offset()))
    }

    /// `bpf_map_lookup_elem` and `bpf_map_lookup_percpu_elem`: the address of the value under a key, on this CPU
    /// for the per-CPU kinds. The address is good for `value_size` bytes as long as the map lives, even when the
    /// element is deleted. `None` as well for a key of the wrong length and a CPU the map does not have.
    ///
    /// In maps of maps it is the address of the inner map. Program arrays, perf event arrays, CPU maps, and the kinds without
    /// keys have no values for programs to look up.
    #[inline]
    #[must_use]
    pub fn lookup(self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        if key.len() == self.0.key_size { self.0.storage.lookup(key, cpu) } else { None }
    }

    /// The number of the socket under a key: in maps of AF_XDP sockets the one that user space stored; in `sockmap` and
    /// `sockhash` the socket's place among those of the host's network, from 1.
    #[must_use]
    pub fn socket(self, key: &[u8]) -> Option<u32> {
        if key.len() == self.0.key_size { self.0.storage.socket(key) } else { None }
    }

    /// [`lookup`](Self::lookup) as a function for generated code, made for the kind and the size of its keys; `None` where
    /// there is nothing to gain over the helper.
    #[inline]
    #[must_use]
    pub fn lookup_function(self) -> Option<LookupFunction> {
        self.0.lookup_function
    }

    /// The function that begins a look-up ahead, for generated code that calls it in place of the helper and ignores the result; `None` for
    /// kinds without one.
    #[must_use]
    pub fn ahead_function(self) -> Option<AheadFunction> {
        self.0.storage.ahead_function()
    }

    /// Bytes of memory that look-ups touch if the keys are random, about, in a map of this [`Fill`]; 0 for kinds without an
    /// [`ahead_function`](Self::ahead_function). Arrays are always full. Takes a fixed time.
    #[must_use]
    pub fn look_up_bytes(self, fill: Fill) -> u64 {
        self.0.storage.look_up_bytes(fill)
    }

    /// Whether elements can go while a program looks at them, so that workers must be pinned
    /// ([`Reader::pin`](paceline_epoch::Reader::pin), of the [global domain](paceline_epoch::Domain::global)) from before a look-up
    /// until they are done with what it found.
    #[must_use]
    pub fn frees_values(self) -> bool {
        self.0.storage.frees_values()
    }

    /// `bpf_map_update_elem`. In the per-CPU kinds only this CPU's value changes; a new element is zero on the
    /// other CPUs.
    ///
    /// # Errors
    /// `EINVAL`: unknown flags, or a wrong length or CPU. `EEXIST`, `ENOENT`: what the flags forbid. `E2BIG`: the
    /// map is full, or the index out of range. `ENOSPC`: a longest-prefix map is full. `ENOMEM`: workers that are in a burst may
    /// still be using all that was replaced, more than the map keeps room for; it never waits for them. `EPERM`: programs may not write, where the kernel's
    /// verifier would have refused the program. `EOPNOTSUPP`: the kind cannot be updated by programs.
    #[inline]
    pub fn update(self, key: &[u8], value: &[u8], flags: u64, cpu: usize) -> Result<(), Errno> {
        self.check_program_may_write()?;
        if key.len() != self.0.key_size || value.len() != self.0.value_size {
            return Err(Errno::EINVAL);
        }
        match self.0.without_special(value) {
            Some(value) if flags & LOCK != 0 => match self.0.change_locked(key, &value, flags)? {
                true => Ok(()),
                false => self.0.storage.update(key, &value, flags & !LOCK, cpu),
            },
            Some(value) => self.0.storage.update(key, &value, flags, cpu),
            None => self.0.storage.update(key, value, flags, cpu),
        }
    }

    /// Whether a range that lies in one value touches a field of it that is not for loads and stores, such as a lock.
    #[must_use]
    pub fn touches_special(self, address: usize, len: usize) -> bool {
        if self.0.spec.special.is_empty() {
            return false;
        }
        self.0.storage.offset_in_value(address).is_some_and(|start| {
            let end = start.saturating_add(len);
            self.0.spec.special.iter().any(|field| {
                let offset = field.offset as usize;
                start < offset.saturating_add(field.size as usize) && offset < end
            })
        })
    }

    /// Whether an address is that of the `bpf_spin_lock` in a value of this map.
    #[must_use]
    pub fn is_spin_lock(self, address: usize) -> bool {
        let offset = self.0.spec.spin_lock().and_then(|lock| usize::try_from(lock.offset).ok());
        offset.is_some() && self.0.storage.offset_in_value(address) == offset
    }

    /// `bpf_map_delete_elem`.
    ///
    /// # Errors
    /// `EINVAL`: an array, a wrong length, or a prefix longer than its key. `ENOENT`: no such key. `EPERM`,
    /// `EOPNOTSUPP` as for
    /// [`update`](Self::update).
    #[inline]
    pub fn delete(self, key: &[u8]) -> Result<(), Errno> {
        self.check_program_may_write()?;
        if key.len() != self.0.key_size {
            return Err(Errno::EINVAL);
        }
        self.0.storage.delete(key)
    }

    #[inline]
    fn check_program_may_write(self) -> Result<(), Errno> {
        if self.0.programs_may_write { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// `bpf_map_push_elem`: adds a value to a queue, a stack or a Bloom filter.
    ///
    /// # Errors
    /// `E2BIG`: a full queue or stack, unless the flags have `BPF_EXIST`: then the oldest value goes. `EINVAL`: other flags,
    /// or a wrong length. `EPERM`, `EOPNOTSUPP` as for [`update`](Self::update).
    pub fn push(self, value: &[u8], flags: u64) -> Result<(), Errno> {
        self.check_program_may_write()?;
        if value.len() == self.0.value_size { self.0.storage.push(value, flags) } else { Err(Errno::EINVAL) }
    }

    /// `bpf_map_pop_elem`: takes the next value of a queue or stack.
    ///
    /// # Errors
    /// `ENOENT`: there is none; the value is zeroed. `EINVAL`: a wrong length. `EPERM`, `EOPNOTSUPP` as for
    /// [`update`](Self::update).
    pub fn pop(self, value: &mut [u8]) -> Result<(), Errno> {
        self.check_program_may_write()?;
        if value.len() == self.0.value_size { self.0.storage.pop(value) } else { Err(Errno::EINVAL) }
    }

    /// `bpf_map_peek_elem`: copies the next value of a queue or stack; of a Bloom filter, tells whether it may have the value.
    ///
    /// # Errors
    /// `ENOENT`: there is none, and the value is zeroed; or the filter has it not. `EINVAL`: a wrong length. `EOPNOTSUPP`:
    /// another kind.
    pub fn peek(self, value: &mut [u8]) -> Result<(), Errno> {
        if value.len() == self.0.value_size { self.0.storage.peek(value) } else { Err(Errno::EINVAL) }
    }

    /// Whether `len` bytes at `address` lie wholly inside one value of this map, live or stale. Takes a fixed time.
    /// True says that the memory may be touched; [`access`](Self::access) says how.
    #[inline]
    #[must_use]
    pub fn contains(self, address: usize, len: usize) -> bool {
        self.0.storage.contains(address, len)
    }

    /// Whether `bpf_redirect_map` finds a target.
    #[must_use]
    pub fn has_target(self, index: u32) -> bool {
        self.0.storage.has_target(index)
    }

    /// Number of elements, regardless of user space's access; in kinds of references that have all indices from the start those that
    /// are set. `None` where elements have no keys.
    #[must_use]
    pub fn elements(self) -> Option<usize> {
        self.0.spec.kind.has_keys().then(|| match self.0.storage.key_space() {
            KeySpace::Entries(entries) => entries.set(),
            _ => self.keys().count(),
        })
    }

    /// Whether a Bloom filter has values.
    #[must_use]
    pub fn has_values(self) -> bool {
        self.0.storage.has_values()
    }

    /// All keys, regardless of user space's access (`bpf_for_each_map_elem`).
    #[must_use]
    pub fn keys(self) -> Keys<'a> {
        Keys::new(self.0)
    }
}
