//! Maps of sockets (`net/core/sock_map.c`). An element is a socket's number in the network of the host, where the kernel takes a
//! descriptor from user space and gives back a cookie; a program has the socket itself, which helpers find by the number.

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, MAX_STACK, REFERENCE_FLAGS, Request};
use crate::entries::Entries;
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::slots::Caller;
use crate::table::{Table, TableShape};
use crate::words;

/// Most entries of a `SOCKMAP` (`INT_MAX`), and most buckets of a `SOCKHASH`.
const MAX_ENTRIES: u32 = i32::MAX as u32;
const MAX_HASH_ENTRIES: u32 = 1 << 31;

/// Checks of both kinds, but for the key.
fn check(request: &Request<'_>) -> Result<(), CreateErrorKind> {
    request.check_entries()?;
    request.check_value_is_one_of(&[4, 8])?;
    request.check_flags(REFERENCE_FLAGS)
}

/// The number in a value of 4 or 8 bytes; 0 is no socket's.
fn number(value: &[u8]) -> Result<u32, Errno> {
    let wide = match *value {
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => value.try_into().map(u64::from_ne_bytes).map_err(|_| Errno::EINVAL)?,
    };
    match i32::try_from(wide) {
        Ok(0) => Err(Errno::EBADF),
        Ok(number) => Ok(number.unsigned_abs()),
        Err(_) => Err(Errno::EINVAL),
    }
}

/// User space is given numbers where values have the size of the kernel's cookies (`sock_map_lookup_sys`).
fn give(number: Option<u32>, value_size: usize, out: &mut Vec<u8>) -> Result<(), Errno> {
    if value_size != 8 {
        return Err(Errno::ENOSPC);
    }
    out.extend(u64::from(number.ok_or(Errno::ENOENT)?).to_ne_bytes());
    Ok(())
}

/// `BPF_MAP_TYPE_SOCKMAP`
pub(crate) struct SockMap {
    entries: Entries,
    value_size: usize,
}

impl SockMap {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_index_key()?;
        check(request)?;
        // The kernel counts this among wrong arguments (`EINVAL`).
        request.check_entries_at_most(MAX_ENTRIES)?;
        Ok(Box::new(Self { entries: Entries::open(request)?, value_size: request.value_size() }))
    }
}

impl MapOps for SockMap {
    fn socket(&self, key: &[u8]) -> Option<u32> {
        self.entries.load(self.entries.index(key)?).map(|word| word as u32)
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        self.set_with(key, value, flags)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        give(self.socket(key), self.value_size, out)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let number = number(value)?;
        let index = self.entries.index(key).ok_or(Errno::E2BIG)?;
        self.entries.replace(index, number.into(), mode)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.entries.index(key).ok_or(Errno::EINVAL)?;
        if self.entries.swap(index, 0) == 0 { Err(Errno::EINVAL) } else { Ok(()) }
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.entries)
    }
}

/// `BPF_MAP_TYPE_SOCKHASH`
pub(crate) struct SockHash {
    table: Table,
    value_size: usize,
}

impl SockHash {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request)?;
        request.check_key_between(1, MAX_STACK)?;
        request.check_entries_at_most(MAX_HASH_ENTRIES)?;
        let shape = TableShape::of(request, 1);
        request.check_memory(shape.bytes(0))?;
        Ok(Box::new(Self { table: Table::new(shape, 0)?, value_size: request.value_size() }))
    }

    fn put(&self, key: &[u8], value: &[u8], mode: UpdateMode, caller: Caller) -> Result<(), Errno> {
        let number = number(value)?;
        let mut spare = self.table.spare(key, caller)?;
        words::fill(self.table.payload(spare.slot()), &u64::from(number).to_ne_bytes());
        let mut entry = self.table.lock(key);
        mode.check(entry.slot().is_some())?;
        entry.put(&mut spare, &mut None)
    }
}

impl MapOps for SockHash {
    fn socket(&self, key: &[u8]) -> Option<u32> {
        let load = |slot| words::load_first(self.table.payload(slot));
        self.table.inspect(key, load).map(|word| word as u32)
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        self.put(key, value, UpdateMode::from_flags(flags)?, Caller::Worker)
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        give(self.socket(key), self.value_size, out)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        self.put(key, value, mode, Caller::User)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        if self.table.lock(key).remove() { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.table)
    }
}
