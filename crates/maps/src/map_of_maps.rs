//! Maps of maps (`kernel/bpf/map_in_map.c`). User space names an inner map by its number, where the kernel takes a
//! descriptor and gives back an id. A program's look-up finds the inner map's handle, its address. A map that was replaced
//! or taken out lives until the bursts are over that may have found it.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_epoch::Domain;
use paceline_spec::{Errno, MapKind, MapSpec};

use crate::array;
use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::Entries;
use crate::hash;
use crate::lookup::{self, LookupFunction};
use crate::map::{Map, Mismatch};
use crate::slots::Caller;
use crate::storage::{Mode, Storage};
use crate::table::{Found, Table, TableShape};
use crate::words;

/// What inner maps must look like.
struct Template(MapSpec);

impl Template {
    /// Makes one inner map, as libbpf does, to see whether it can be made.
    fn of(request: &Request<'_>) -> Result<Self, CreateErrorKind> {
        let inner = request.spec.inner.as_deref().ok_or(CreateErrorKind::NoInner)?;
        match inner.kind {
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => return Err(CreateErrorKind::NestedInner),
            // Which programs an array may hold is not known before it is used.
            MapKind::ProgArray => return Err(CreateErrorKind::InnerKind(inner.kind)),
            _ => {}
        }
        let made = Map::try_create(inner, request.limits)
            .map_err(|error| CreateErrorKind::Inner(Box::new(error)))?;
        Ok(Self(made.spec().clone()))
    }

    fn check(&self, map: &Map) -> Result<(), Mismatch> {
        crate::map::compare_inner(&self.0, map.spec())
    }

    /// The map of a number, if it fits.
    fn map_of(&self, value: &[u8]) -> Result<Arc<Map>, Errno> {
        let id = value.try_into().map(u32::from_ne_bytes).map_err(|_| Errno::EINVAL)?;
        let map = Map::by_id(id).ok_or(Errno::EBADF)?;
        self.check(&map).map_err(|_| Errno::EINVAL)?;
        Ok(map)
    }
}

fn handle(map: &Arc<Map>) -> u64 {
    Arc::as_ptr(map) as u64
}

fn from_handle(word: u64) -> Option<NonNull<u8>> {
    NonNull::new(word as *mut u8)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of a map that programs may have found.
fn retire(map: Option<Arc<Map>>) {
    if let Some(map) = map {
        Domain::global().retire(map);
    }
}

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS`
pub(crate) struct ArrayOfMaps {
    handles: Entries,
    /// What keeps the maps; whoever changes a handle has the lock.
    maps: Mutex<HashMap<usize, Arc<Map>>>,
    template: Template,
}

impl ArrayOfMaps {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn Storage>, CreateErrorKind> {
        request.check_value_is_one_of(&[4])?;
        array::check(request, REFERENCE_FLAGS)?;
        let template = Template::of(request)?;
        Ok(Box::new(Self { handles: Entries::open(request)?, maps: Mutex::default(), template }))
    }

    fn put(&self, index: usize, map: Option<Arc<Map>>) -> Option<Arc<Map>> {
        let mut maps = lock(&self.maps);
        self.handles.swap(index, map.as_ref().map_or(0, handle));
        match map {
            Some(map) => maps.insert(index, map),
            None => maps.remove(&index),
        }
    }
}

impl Storage for ArrayOfMaps {
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        from_handle(self.handles.load(self.handles.index(key)?)?)
    }

    fn elements_can_go(&self) -> bool {
        true
    }

    fn check_inner(&self, map: &Map) -> Result<(), Mismatch> {
        self.template.check(map)
    }

    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let index = self.handles.index(key).ok_or(Errno::ENOENT)?;
        let maps = lock(&self.maps);
        out.extend(maps.get(&index).ok_or(Errno::ENOENT)?.id().to_ne_bytes());
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno> {
        if mode != Mode::Any {
            return Err(Errno::EINVAL);
        }
        let index = self.handles.index(key).ok_or(Errno::E2BIG)?;
        retire(self.put(index, Some(self.template.map_of(value)?)));
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.handles.index(key).ok_or(Errno::E2BIG)?;
        let old = self.put(index, None).ok_or(Errno::ENOENT)?;
        retire(Some(old));
        Ok(())
    }

    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.handles.keys(part, out)
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.handles.next_key(after)
    }
}

/// `BPF_MAP_TYPE_HASH_OF_MAPS`; the payload of a slot is the handle.
pub(crate) struct HashOfMaps {
    table: Table,
    /// What keeps the maps; whoever changes an element has the lock.
    maps: Mutex<HashMap<Box<[u8]>, Arc<Map>>>,
    template: Template,
}

impl HashOfMaps {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn Storage>, CreateErrorKind> {
        request.check_value_is_one_of(&[4])?;
        hash::check(request)?;
        let template = Template::of(request)?;
        let shape = TableShape::of(request, 1);
        request.check_memory(shape.bytes(0))?;
        Ok(Box::new(Self { table: Table::new(shape, 0)?, maps: Mutex::default(), template }))
    }

    fn put(&self, key: &[u8], map: Arc<Map>, mode: Mode) -> Result<(), Errno> {
        let mut spare = self.table.spare(key, Caller::User)?;
        words::fill(self.table.payload(spare.slot()), &handle(&map).to_ne_bytes());
        let mut maps = lock(&self.maps);
        let mut entry = self.table.lock(key);
        mode.check(entry.slot().is_some())?;
        entry.put(&mut spare, &mut None)?;
        let old = maps.insert(key.into(), map);
        drop((entry, maps));
        retire(old);
        Ok(())
    }
}

impl lookup::Elements for HashOfMaps {
    fn table(&self) -> &Table {
        &self.table
    }

    fn value(&self, found: Found<'_>, _cpu: usize) -> Option<NonNull<u8>> {
        // Acquire: the map is whole.
        from_handle(found.payload.first()?.load(Acquire))
    }
}

impl Storage for HashOfMaps {
    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        lookup::Elements::value(self, self.table.found(self.table.find(key)?), cpu)
    }

    fn lookup_function(&self) -> Option<LookupFunction> {
        Some(LookupFunction::of_table(self, false))
    }

    fn elements_can_go(&self) -> bool {
        true
    }

    fn check_inner(&self, map: &Map) -> Result<(), Mismatch> {
        self.template.check(map)
    }

    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let maps = lock(&self.maps);
        out.extend(maps.get(key).ok_or(Errno::ENOENT)?.id().to_ne_bytes());
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno> {
        self.put(key, self.template.map_of(value)?, mode)
    }

    fn set_with(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let map = self.template.map_of(value)?;
        self.put(key, map, Mode::from_flags(flags)?)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let mut maps = lock(&self.maps);
        if !self.table.lock(key).remove() {
            return Err(Errno::ENOENT);
        }
        let old = maps.remove(key);
        drop(maps);
        retire(old);
        Ok(())
    }

    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.table.keys(part, out)
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.table.next_key(after)
    }
}
