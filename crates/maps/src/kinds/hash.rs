//! Hash tables (`kernel/bpf/hashtab.c`).

use std::ptr::NonNull;

use paceline_btf::SpecialField;
use paceline_spec::{Errno, MapFlags};

use crate::ahead;
use crate::create::{ACCESS, CreateErrorKind, MAX_ALLOCATION, NUMA_NODE, Request};
use crate::eviction::Clock;
use crate::fill::Fill;
use crate::kinds::array::{MAX_PER_CPU_VALUE, append_all_cpus, fill_all_cpus};
use crate::lookup::{self, Elements as _, LookupFunction};
use crate::map_ops::{Batches, KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::slab::{Shape, Slab, WORD, prefetch_bytes};
use crate::slots::{Caller, Permit};
use crate::table::{Found, Locked, Own, Spare, Table, TableShape};
use crate::timer::Timers;
use crate::walks::AheadFunction;
use crate::{spin_lock, words};

/// Key and value together stay below `KMALLOC_MAX_SIZE - sizeof(struct htab_elem)`, which has 48 bytes on x86-64.
const MAX_ELEMENT: u32 = MAX_ALLOCATION - 48 - 1;

/// `htab_map_alloc` refuses a bucket count that does not fit 32 bits.
const MAX_ENTRIES: u32 = 1 << 31;

/// Tries to make room in an LRU table while other threads fill it: many more than there are threads that could.
const MAX_EVICTIONS: usize = 1024;

/// Flags that all hash kinds take.
const FLAGS: MapFlags = MapFlags(ACCESS.0 | MapFlags::NO_PREALLOC.0 | MapFlags::ZERO_SEED.0);

/// The checks that all hash kinds share, after that of the flags.
fn check_sizes(request: &Request<'_>) -> Result<(), CreateErrorKind> {
    request.check_entries()?;
    let (key, value) = (request.spec.key_size, request.spec.value_size);
    if key == 0 {
        return Err(CreateErrorKind::ZeroKeySize);
    }
    if value == 0 {
        return Err(CreateErrorKind::ZeroValueSize);
    }
    if key >= MAX_ELEMENT {
        return Err(CreateErrorKind::KeyTooLarge { size: key, limit: MAX_ELEMENT - 1 });
    }
    let size = u64::from(key) + u64::from(value);
    if size > u64::from(MAX_ELEMENT) {
        return Err(CreateErrorKind::ElementTooLarge { size, limit: MAX_ELEMENT });
    }
    Ok(())
}

/// The checks of hashes whose elements stay.
pub(crate) fn check(request: &Request<'_>) -> Result<(), CreateErrorKind> {
    request.check_flags(FLAGS | NUMA_NODE)?;
    check_sizes(request)?;
    request.check_entries_at_most(MAX_ENTRIES)
}

/// The checks of the LRU kinds. Their elements are always allocated up front: that is a flag they refuse.
fn check_lru(request: &mut Request<'_>) -> Result<(), CreateErrorKind> {
    let list_per_cpu = request.spec.flags.contains(MapFlags::NO_COMMON_LRU);
    request.check_flags(FLAGS | NUMA_NODE | MapFlags::NO_COMMON_LRU)?;
    request.check_has_no_flag(MapFlags::NO_PREALLOC)?;
    if list_per_cpu || request.spec.kind.is_per_cpu() {
        request.check_has_no_flag(NUMA_NODE)?;
    }
    check_sizes(request)?;
    request.check_entries_at_most(MAX_ENTRIES)?;
    if list_per_cpu {
        // As if each CPU had a list of its own, all equally long.
        let (entries, cpus) =
            (request.spec.max_entries, u32::try_from(request.limits.cpus).unwrap_or(u32::MAX));
        let rounded = entries.checked_next_multiple_of(cpus);
        request.spec.max_entries = rounded.unwrap_or(entries - entries % cpus);
    }
    Ok(())
}

/// A table that may give up elements to make room.
struct Elements {
    table: Table,
    clock: Option<Clock>,
}

impl Elements {
    /// `beside` is how many bytes there are of each element elsewhere.
    fn new(shape: TableShape, beside: u64) -> Result<Self, CreateErrorKind> {
        let table = Table::new(shape, beside)?;
        let clock = shape.lru.then(|| Clock::new(shape.cpus.saturating_add(1)));
        Ok(Self { table, clock })
    }

    fn with_timers(self, timers: Option<Timers>) -> Self {
        Self { table: self.table.with_timers(timers), ..self }
    }

    /// Adds or replaces the element of a key, with the payload that `write` writes.
    fn set(&self, key: &[u8], mode: UpdateMode, caller: Caller, write: impl Fn(u32)) -> Result<(), Errno> {
        let mut entry = self.table.lock(key);
        mode.check(entry.slot().is_some())?;
        let own = entry.put_own(key, &write);
        drop(entry);
        let (mut spare, permit) = match own {
            Own::Put => return Ok(()),
            Own::NoPermit(spare) => (spare, self.clock.as_ref().and_then(|clock| clock.evict(&self.table))),
            Own::NoSlot => {
                let spare = self.table.spare(key, caller)?;
                write(spare.slot());
                (spare, None)
            }
        };
        self.put(key, mode, permit, |entry, permit| entry.put(&mut spare, permit))
    }

    /// Changes the element of a key where it is, or gives it one that `new` fills.
    fn change(
        &self,
        key: &[u8],
        mode: UpdateMode,
        caller: Caller,
        change: impl Fn(u32),
        new: impl Fn(u32),
    ) -> Result<(), Errno> {
        let mut spare: Option<Spare<'_>> = None;
        loop {
            // Not under the lock: a wait for a spare slot must not block others.
            if spare.is_none() && self.table.inspect(key, drop).is_none() {
                let fresh = self.table.spare(key, caller)?;
                new(fresh.slot());
                spare = Some(fresh);
            }
            let put = self.put(key, mode, None, |entry, permit| match (entry.slot(), &mut spare) {
                (Some(slot), _) => {
                    change(slot);
                    self.table.touch(slot);
                    Ok(true)
                }
                (None, Some(spare)) => entry.put(spare, permit).map(|()| true),
                // It was removed meanwhile.
                (None, None) => Ok(false),
            })?;
            if put {
                return Ok(());
            }
        }
    }

    /// Looks at the element of a key and removes it.
    fn take(&self, key: &[u8], look: impl FnOnce(u32)) -> Result<(), Errno> {
        let mut entry = self.table.lock(key);
        look(entry.slot().ok_or(Errno::ENOENT)?);
        entry.remove();
        Ok(())
    }

    /// Lets `put` change the key's element while no other thread can, with the permit if it needs one, and makes room as long as it finds
    /// none.
    fn put<'a, T>(
        &'a self,
        key: &'a [u8],
        mode: UpdateMode,
        mut permit: Option<Permit<'a>>,
        mut put: impl FnMut(&mut Locked<'a>, &mut Option<Permit<'a>>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        // Each try that finds the table full follows an eviction, whose room other threads may take.
        for _ in 0..MAX_EVICTIONS {
            let mut entry = self.table.lock(key);
            mode.check(entry.slot().is_some())?;
            match (put(&mut entry, &mut permit), &self.clock) {
                (Err(Errno::E2BIG), Some(clock)) => {
                    drop(entry);
                    permit = clock.evict(&self.table);
                }
                (result, _) => return result,
            }
        }
        Err(Errno::ENOMEM)
    }
}

/// `BPF_MAP_TYPE_HASH` and `BPF_MAP_TYPE_LRU_HASH`; the value is the payload of its slot.
pub(crate) struct Hash {
    elements: Elements,
    value_size: usize,
    special: Box<[SpecialField]>,
}

impl Hash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request)?;
        Self::build(request)
    }

    pub(crate) fn open_lru(request: &mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check_lru(request)?;
        Self::build(request)
    }

    fn build(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        let shape = TableShape::of(request, words::words_for(request.value_size()));
        request.check_memory(shape.bytes(0))?;
        Ok(Box::new(Self {
            elements: Elements::new(shape, 0)?.with_timers(Timers::of(&request.spec.special)),
            value_size: request.value_size(),
            special: request.spec.special.clone(),
        }))
    }

    fn put(&self, key: &[u8], value: &[u8], mode: UpdateMode, caller: Caller) -> Result<(), Errno> {
        self.elements.set(key, mode, caller, |slot| words::fill(self.elements.table.payload(slot), value))
    }
}

impl lookup::Elements for Hash {
    fn table(&self) -> &Table {
        &self.elements.table
    }

    #[inline(always)]
    fn value(&self, found: Found<'_>, _cpu: usize) -> Option<NonNull<u8>> {
        Some(found.address())
    }
}

impl MapOps for Hash {
    fn batches(&self) -> Batches {
        Batches::Take
    }

    #[inline]
    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        let table = &self.elements.table;
        self.value(table.found(table.find(key)?), cpu)
    }

    fn lookup_function(&self) -> Option<LookupFunction> {
        Some(LookupFunction::of_table(self, false))
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        ahead::of_table(self)
    }

    fn look_up_bytes(&self, fill: Fill) -> u64 {
        self.elements.table.look_up_bytes(fill)
    }

    fn frees_values(&self) -> bool {
        true
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        self.put(key, value, UpdateMode::from_flags(flags)?, Caller::Worker)
    }

    fn change_locked(&self, key: &[u8], value: &[u8], mode: UpdateMode, lock: usize) -> Result<bool, Errno> {
        let table = &self.elements.table;
        // The slot is not reused for another key meanwhile.
        let entry = table.lock(key);
        let found = entry.slot();
        mode.check(found.is_some())?;
        let Some(slot) = found else { return Ok(false) };
        let lock = table.payload_half_word(slot, lock).ok_or(Errno::EINVAL)?;
        spin_lock::hold(lock, || words::fill_around(table.payload(slot), value, &self.special));
        Ok(true)
    }

    fn get_locked(&self, key: &[u8], out: &mut Vec<u8>, lock: usize) -> Result<(), Errno> {
        let table = &self.elements.table;
        let copy = |slot| {
            let lock = table.payload_half_word(slot, lock).ok_or(Errno::EINVAL)?;
            spin_lock::hold(lock, || words::append(out, table.payload(slot), self.value_size));
            Ok(())
        };
        table.inspect(key, copy).ok_or(Errno::ENOENT)?
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.elements.table.payload_holds(address, len, self.value_size)
    }

    fn offset_in_value(&self, address: usize) -> Option<usize> {
        self.elements.table.offset_in_payload(address)
    }

    fn timers(&self) -> Option<&Timers> {
        self.elements.table.timers()
    }

    fn key_at(&self, value: usize) -> Option<Vec<u8>> {
        self.elements.table.key_of_payload(value)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let copy = |slot| words::append(out, self.elements.table.payload(slot), self.value_size);
        self.elements.table.inspect(key, copy).ok_or(Errno::ENOENT)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        self.put(key, value, mode, Caller::User)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        if self.elements.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn take(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        self.elements.take(key, |slot| words::append(out, self.elements.table.payload(slot), self.value_size))
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.elements.table)
    }
}

/// `BPF_MAP_TYPE_PERCPU_HASH` and `BPF_MAP_TYPE_LRU_PERCPU_HASH`; the values of a slot are the cells of that number,
/// one in each CPU's lane.
pub(crate) struct PerCpuHash {
    elements: Elements,
    values: Slab,
    value_size: usize,
}

impl PerCpuHash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_flags(FLAGS)?;
        check_sizes(request)?;
        request.check_value_at_most(MAX_PER_CPU_VALUE)?;
        request.check_entries_at_most(MAX_ENTRIES)?;
        Self::build(request)
    }

    pub(crate) fn open_lru(request: &mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check_lru(request)?;
        request.check_value_at_most(MAX_PER_CPU_VALUE)?;
        Self::build(request)
    }

    fn build(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        let shape = TableShape::of(request, 0);
        let (words, lanes) = (words::words_for(request.value_size()), request.limits.cpus);
        let beside = ((words * WORD) as u64).saturating_mul(lanes as u64);
        let values = Shape { lanes, cells: shape.slots(beside).unwrap_or(usize::MAX), words };
        let needed = shape.bytes(beside).zip(values.bytes());
        request.check_memory(needed.and_then(|(table, values)| table.checked_add(values as u64)))?;
        let (elements, values) = (Elements::new(shape, beside)?, Slab::new(values)?);
        Ok(Box::new(Self { elements, values, value_size: request.value_size() }))
    }

    fn clear(&self, slot: usize) {
        (0..self.values.shape().lanes).for_each(|cpu| words::clear(self.values.words(cpu, slot)));
    }
}

impl lookup::Elements for PerCpuHash {
    fn table(&self) -> &Table {
        &self.elements.table
    }

    #[inline(always)]
    fn value(&self, found: Found<'_>, cpu: usize) -> Option<NonNull<u8>> {
        self.values.cell(cpu, found.slot as usize)
    }

    #[inline(always)]
    fn prefetch_value(&self, slot: u32, cpu: usize) {
        if let Some(value) = self.values.cell(cpu, slot as usize) {
            prefetch_bytes(value.addr().get(), self.value_size);
        }
    }
}

impl MapOps for PerCpuHash {
    fn batches(&self) -> Batches {
        Batches::Take
    }

    #[inline]
    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        let table = &self.elements.table;
        self.value(table.found(table.find(key)?), cpu)
    }

    fn lookup_function(&self) -> Option<LookupFunction> {
        Some(LookupFunction::of_table(self, true))
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        ahead::of_table(self)
    }

    fn look_up_bytes(&self, fill: Fill) -> u64 {
        let table = &self.elements.table;
        table.look_up_bytes(fill) + u64::from(table.slots_at(fill)) * self.values.stride() as u64
    }

    fn frees_values(&self) -> bool {
        true
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, cpu: usize) -> Result<(), Errno> {
        let mode = UpdateMode::from_flags(flags)?;
        if cpu >= self.values.shape().lanes {
            return Err(Errno::EINVAL);
        }
        let merge = |slot| words::merge(self.values.words(cpu, slot as usize), value);
        self.elements.change(key, mode, Caller::Worker, merge, |slot| {
            self.clear(slot as usize);
            merge(slot);
        })
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.values.holds(address, len, 0, self.value_size)
    }

    fn user_value_size(&self) -> usize {
        self.values.stride() * self.values.shape().lanes
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let copy = |slot| append_all_cpus(&self.values, slot as usize, out);
        self.elements.table.inspect(key, copy).ok_or(Errno::ENOENT)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let fill = |slot| fill_all_cpus(&self.values, slot as usize, value);
        self.elements.change(key, mode, Caller::User, fill, fill)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        if self.elements.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn take(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        self.elements.take(key, |slot| append_all_cpus(&self.values, slot as usize, out))
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.elements.table)
    }
}
