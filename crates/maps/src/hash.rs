//! Hash tables (`kernel/bpf/hashtab.c`).

use std::ptr::NonNull;

use paceline_spec::{Errno, MapFlags};

use crate::array::{MAX_PER_CPU_VALUE, append_all_cpus, fill_all_cpus};
use crate::create::{ACCESS, CreateErrorKind, NUMA_NODE, Request};
use crate::slab::{Shape, Slab};
use crate::storage::{Mode, Storage};
use crate::table::{Table, TableShape};
use crate::words;

/// Key and value together stay below `KMALLOC_MAX_SIZE - sizeof(struct htab_elem)`, on x86-64 4 MiB less 48.
const MAX_ELEMENT: u32 = (4 << 20) - 48 - 1;

/// `htab_map_alloc` refuses a bucket count that does not fit 32 bits.
const MAX_ENTRIES: u32 = 1 << 31;

/// Flags that all hash kinds take.
const FLAGS: MapFlags = MapFlags(ACCESS.0 | MapFlags::NO_PREALLOC.0 | MapFlags::ZERO_SEED.0);

/// The checks that all hash kinds share.
fn check(request: &Request<'_>, flags: MapFlags) -> Result<(), CreateErrorKind> {
    request.check_flags(flags)?;
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

fn table_shape(request: &Request<'_>, payload_words: usize) -> TableShape {
    TableShape {
        key_size: request.key_size(),
        payload_words,
        max_entries: request.spec.max_entries,
        cpus: request.limits.cpus,
        zero_seed: request.spec.flags.contains(MapFlags::ZERO_SEED),
    }
}

/// `BPF_MAP_TYPE_HASH`; the value is the payload of its slot.
pub(crate) struct Hash {
    table: Table,
    value_size: usize,
}

impl Hash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn Storage>, CreateErrorKind> {
        check(request, FLAGS | NUMA_NODE)?;
        request.check_entries_at_most(MAX_ENTRIES)?;
        let shape = table_shape(request, words::words_for(request.value_size()));
        request.check_memory(shape.bytes())?;
        Ok(Box::new(Self { table: Table::new(shape)?, value_size: request.value_size() }))
    }
}

impl Storage for Hash {
    #[inline]
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        self.table.payload_address(self.table.find(key)?)
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        self.set(key, value, Mode::from_flags(flags)?)
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
        self.table.inspect(key, copy).ok_or(Errno::ENOENT)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno> {
        let mut entry = self.table.lock(key);
        mode.check(entry.slot().is_some())?;
        let slot = match entry.replace() {
            Some(slot) => slot,
            None => entry.insert()?,
        };
        words::fill(self.table.payload(slot), value);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        if self.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.table.keys(part, out)
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.table.next_key(after)
    }
}

/// `BPF_MAP_TYPE_PERCPU_HASH`; the values of a slot are the cells of that number, one in each CPU's lane.
pub(crate) struct PerCpuHash {
    table: Table,
    values: Slab,
    value_size: usize,
}

impl PerCpuHash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn Storage>, CreateErrorKind> {
        check(request, FLAGS)?;
        request.check_value_at_most(MAX_PER_CPU_VALUE)?;
        request.check_entries_at_most(MAX_ENTRIES)?;
        let shape = table_shape(request, 0);
        let words = words::words_for(request.value_size());
        let values = Shape { lanes: request.limits.cpus, cells: shape.slots().unwrap_or(usize::MAX), words };
        let needed = shape.bytes().zip(values.bytes());
        request.check_memory(needed.and_then(|(table, values)| table.checked_add(values as u64)))?;
        let (table, values) = (Table::new(shape)?, Slab::new(values)?);
        Ok(Box::new(Self { table, values, value_size: request.value_size() }))
    }

    fn clear(&self, slot: usize) {
        (0..self.values.shape().lanes).for_each(|cpu| words::clear(self.values.words(cpu, slot)));
    }
}

impl Storage for PerCpuHash {
    #[inline]
    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        self.values.cell(cpu, self.table.find(key)? as usize)
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, cpu: usize) -> Result<(), Errno> {
        let mode = Mode::from_flags(flags)?;
        if cpu >= self.values.shape().lanes {
            return Err(Errno::EINVAL);
        }
        let mut entry = self.table.lock(key);
        let found = entry.slot();
        mode.check(found.is_some())?;
        let slot = match found {
            Some(slot) => slot as usize,
            None => {
                let slot = entry.insert()? as usize;
                self.clear(slot);
                slot
            }
        };
        words::merge(self.values.words(cpu, slot), value);
        Ok(())
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
        self.table.inspect(key, copy).ok_or(Errno::ENOENT)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno> {
        let mut entry = self.table.lock(key);
        let found = entry.slot();
        mode.check(found.is_some())?;
        let slot = match found {
            Some(slot) => slot,
            None => entry.insert()?,
        };
        fill_all_cpus(&self.values, slot as usize, value);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        if self.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.table.keys(part, out)
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.table.next_key(after)
    }
}
