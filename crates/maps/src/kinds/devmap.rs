//! Maps of network devices (`kernel/bpf/devmap.c`). A value is `struct bpf_devmap_val`, or only its `ifindex`:
//! interface, then the number of a program to run on the way out. There is no list of interfaces here, so every
//! interface number but 0 is taken for one that exists.

use std::ptr::NonNull;

use paceline_spec::{Errno, XdpAttach};

use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::{Entries, Pair};
use crate::entry_program::{Kept, named};
use crate::map_ops::{KeySpace, MapOps, MapTarget};
use crate::mode::UpdateMode;
use crate::slots::Caller;
use crate::table::{Table, TableShape};
use crate::words;

/// `DEVMAP_HASH` rounds its size up to a power of two in 32 bits.
const MAX_HASH_ENTRIES: u32 = 1 << 31;

fn check(request: &Request<'_>) -> Result<(), CreateErrorKind> {
    request.check_entries()?;
    request.check_index_key()?;
    request.check_value_is_one_of(&[4, 8])?;
    request.check_flags(REFERENCE_FLAGS)?;
    Ok(())
}

/// Keys have four bytes.
fn number(key: &[u8]) -> u32 {
    key.try_into().map_or(0, u32::from_ne_bytes)
}

fn target(word: u64) -> MapTarget {
    let value = Pair::from_word(word);
    MapTarget::Device { ifindex: value.first, program: value.second }
}

/// `BPF_MAP_TYPE_DEVMAP`
pub(crate) struct DevMap {
    entries: Entries,
    programs: Kept,
    value_size: usize,
}

impl DevMap {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request)?;
        let (entries, programs) = (Entries::open(request)?, Kept::default());
        Ok(Box::new(Self { entries, programs, value_size: request.value_size() }))
    }
}

impl MapOps for DevMap {
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        self.entries.address(self.entries.index(key)?)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.entries.contains(address, len, self.value_size)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn entry_programs(&self) -> Option<&Kept> {
        Some(&self.programs)
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        self.entries.get(key, self.value_size, out)
    }

    /// Interface 0 empties the entry; `EINVAL` when it comes with a program, and for a program that is not made for devices.
    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let index = self.entries.index_for_update(key, mode)?;
        let value = Pair::from_value(value).with_program_number();
        if value.first == 0 && value.second != 0 {
            return Err(Errno::EINVAL);
        }
        let program = named(value, XdpAttach::DevMap, Errno::EINVAL)?;
        self.programs.put(&self.entries, index, value, program)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.entries.index(key).ok_or(Errno::EINVAL)?;
        self.programs.put(&self.entries, index, Pair::NONE, None)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.entries)
    }

    fn redirect_target(&self, index: u32) -> Option<MapTarget> {
        self.entries.load(index as usize).map(target)
    }
}

/// `BPF_MAP_TYPE_DEVMAP_HASH`: keys are any 32-bit numbers.
pub(crate) struct DevMapHash {
    table: Table,
    programs: Kept,
    value_size: usize,
}

impl DevMapHash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request)?;
        request.check_entries_at_most(MAX_HASH_ENTRIES)?;
        let shape = TableShape::of(request, 1);
        request.check_memory(shape.bytes(0))?;
        let (table, programs) = (Table::new(shape, 0)?, Kept::default());
        Ok(Box::new(Self { table, programs, value_size: request.value_size() }))
    }

    fn word(&self, key: &[u8]) -> Option<u64> {
        let load = |slot| words::load_first(self.table.payload(slot));
        self.table.inspect(key, load)
    }
}

impl MapOps for DevMapHash {
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        self.table.payload_address(self.table.find(key)?)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.table.payload_holds(address, len, self.value_size)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn entry_programs(&self) -> Option<&Kept> {
        Some(&self.programs)
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let word = self.word(key).ok_or(Errno::ENOENT)?;
        Pair::from_word(word).append(out, self.value_size);
        Ok(())
    }

    /// Interface 0 is `EINVAL`, and so is a program that is not made for devices. `EXIST` does not ask for an entry: the kernel
    /// tests `NOEXIST` alone.
    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let value = Pair::from_value(value).with_program_number();
        if value.first == 0 {
            return Err(Errno::EINVAL);
        }
        let program = named(value, XdpAttach::DevMap, Errno::EINVAL);
        let mut spare = self.table.spare(key, Caller::User)?;
        words::fill(self.table.payload(spare.slot()), &value.to_word().to_ne_bytes());
        self.programs.change(number(key), program.clone().ok().flatten(), || {
            let mut entry = self.table.lock(key);
            if entry.slot().is_some() && mode == UpdateMode::NoExist {
                return Err(Errno::EEXIST);
            }
            program.and_then(|_| entry.put(&mut spare, &mut None))
        })
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let remove = || if self.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) };
        self.programs.change(number(key), None, remove)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.table)
    }

    fn redirect_target(&self, index: u32) -> Option<MapTarget> {
        self.word(&index.to_ne_bytes()).map(target)
    }

    fn has_target(&self, index: u32) -> bool {
        self.table.find(&index.to_ne_bytes()).is_some()
    }

    fn frees_values(&self) -> bool {
        true
    }
}
