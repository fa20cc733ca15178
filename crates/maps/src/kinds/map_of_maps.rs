//! Maps of maps (`kernel/bpf/map_in_map.c`). User space names an inner map by its number, where the kernel takes a
//! descriptor and gives back an id. A program's look-up finds the inner map's handle, its address. A map that was replaced
//! or taken out lives until the bursts are over that may have found it.

use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_epoch::Domain;
use paceline_spec::{Errno, InnerLength, MapSpec};

use crate::ahead;
use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::Entries;
use crate::fill::Fill;
use crate::indices;
use crate::inner::{InnerMaps, Mismatch, compare_inner};
use crate::kinds::hash;
use crate::lookup::{self, LookupFunction};
use crate::map::Map;
use crate::map_ops::{Batches, KeySpace, MapOps};
use crate::map_user::MapUser;
use crate::mode::UpdateMode;
use crate::slots::Caller;
use crate::table::{Found, Table, TableShape};
use crate::walks::AheadFunction;
use crate::words;

/// Template that inner maps must match.
struct Template(MapSpec);

impl Template {
    /// Makes one inner map, as libbpf does, to see whether it can be made.
    fn of(request: &Request<'_>) -> Result<Self, CreateErrorKind> {
        let inner = request.spec.inner.as_deref().ok_or(CreateErrorKind::NoInner)?;
        if inner.kind.holds_maps() {
            return Err(CreateErrorKind::NestedInner);
        }
        if inner.kind.rules().inner_length == InnerLength::Forbidden {
            return Err(CreateErrorKind::InnerKind(inner.kind));
        }
        let made = (request.try_inner)(inner, request.limits);
        made.map(Self).map_err(|error| CreateErrorKind::Inner(Box::new(error)))
    }

    fn check(&self, map: &MapSpec) -> Result<(), Mismatch> {
        compare_inner(&self.0, map)
    }

    /// The map of a number, if it fits.
    fn map_of(&self, value: &[u8]) -> Result<Arc<Map>, Errno> {
        let id = value.try_into().map(u32::from_ne_bytes).map_err(|_| Errno::EINVAL)?;
        let map = Map::by_id(id).ok_or(Errno::EBADF)?;
        self.check(map.spec()).map_err(|_| Errno::EINVAL)?;
        Ok(map)
    }
}

fn handle(map: &Arc<Map>) -> u64 {
    Arc::as_ptr(map) as u64
}

fn from_handle(word: u64) -> Option<NonNull<u8>> {
    NonNull::new(word as *mut u8)
}

/// References of a map of maps to an element.
struct Held {
    map: Arc<Map>,
    /// The user on behalf of the outer map's users, as long as there are any.
    user: Option<MapUser>,
}

/// Releases a map that programs may have looked up.
fn retire(held: Option<Held>) {
    if let Some(Held { map, user }) = held {
        user.into_iter().for_each(MapUser::leave);
        let bytes = map.declared_bytes();
        Domain::global().retire_sized(map, bytes);
    }
}

/// References to the inner maps, by key. Changes of entries hold the lock.
struct Kept<K>(Mutex<State<K>>);

struct State<K> {
    maps: HashMap<K, Held>,
    /// Whether the map that they are in has users.
    is_used: bool,
}

impl<K> Default for Kept<K> {
    fn default() -> Self {
        Self(Mutex::new(State { maps: HashMap::new(), is_used: false }))
    }
}

impl<K> Kept<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> State<K> {
    fn put(&mut self, key: K, map: Arc<Map>) -> Option<Held> {
        let user = self.is_used.then(|| MapUser::new(&map)).flatten();
        self.maps.insert(key, Held { map, user })
    }
}

impl<K> InnerMaps for Kept<K> {
    fn use_all(&self) {
        let mut state = self.lock();
        state.is_used = true;
        state.maps.values_mut().for_each(|held| held.user = MapUser::new(&held.map));
    }

    fn leave_all(&self) -> Box<dyn Any> {
        let mut state = self.lock();
        state.is_used = false;
        let users = state.maps.values_mut().filter_map(|held| held.user.take());
        Box::new(users.collect::<Vec<MapUser>>())
    }
}

/// `ENOMEM` while workers that stall keep too many maps that were replaced before.
fn admit() -> Result<(), Errno> {
    Domain::global().admit().map_err(|_| Errno::ENOMEM)
}

/// `BPF_MAP_TYPE_ARRAY_OF_MAPS`
pub(crate) struct ArrayOfMaps {
    handles: Entries,
    kept: Kept<usize>,
    template: Template,
}

impl ArrayOfMaps {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_value_is_one_of(&[4])?;
        indices::check(request, REFERENCE_FLAGS)?;
        let template = Template::of(request)?;
        Ok(Box::new(Self { handles: Entries::open(request)?, kept: Kept::default(), template }))
    }

    fn put(&self, index: usize, map: Option<Arc<Map>>) -> Option<Held> {
        let mut kept = self.kept.lock();
        self.handles.swap(index, map.as_ref().map_or(0, handle));
        match map {
            Some(map) => kept.put(index, map),
            None => kept.maps.remove(&index),
        }
    }
}

impl MapOps for ArrayOfMaps {
    fn batches(&self) -> Batches {
        Batches::Update
    }

    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        from_handle(self.handles.load(self.handles.index(key)?)?)
    }

    fn frees_values(&self) -> bool {
        true
    }

    fn check_inner(&self, map: &MapSpec) -> Result<(), Mismatch> {
        self.template.check(map)
    }

    fn inner_maps(&self) -> Option<&dyn InnerMaps> {
        Some(&self.kept)
    }

    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let index = self.handles.index(key).ok_or(Errno::ENOENT)?;
        let kept = self.kept.lock();
        out.extend(kept.maps.get(&index).ok_or(Errno::ENOENT)?.map.id().to_ne_bytes());
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        if mode != UpdateMode::Any {
            return Err(Errno::EINVAL);
        }
        let index = self.handles.index(key).ok_or(Errno::E2BIG)?;
        let map = self.template.map_of(value)?;
        admit()?;
        retire(self.put(index, Some(map)));
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.handles.index(key).ok_or(Errno::E2BIG)?;
        let old = self.put(index, None).ok_or(Errno::ENOENT)?;
        retire(Some(old));
        Ok(())
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.handles)
    }
}

/// `BPF_MAP_TYPE_HASH_OF_MAPS`; the payload of a slot is the handle.
pub(crate) struct HashOfMaps {
    table: Table,
    kept: Kept<Box<[u8]>>,
    template: Template,
}

impl HashOfMaps {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_value_is_one_of(&[4])?;
        hash::check(request)?;
        let template = Template::of(request)?;
        let shape = TableShape::of(request, 1);
        request.check_memory(shape.bytes(0))?;
        Ok(Box::new(Self { table: Table::new(shape, 0)?, kept: Kept::default(), template }))
    }

    fn put(&self, key: &[u8], map: Arc<Map>, mode: UpdateMode) -> Result<(), Errno> {
        admit()?;
        let mut spare = self.table.spare(key, Caller::User)?;
        words::fill(self.table.payload(spare.slot()), &handle(&map).to_ne_bytes());
        let mut kept = self.kept.lock();
        let mut entry = self.table.lock(key);
        mode.check(entry.slot().is_some())?;
        entry.put(&mut spare, &mut None)?;
        let old = kept.put(key.into(), map);
        drop((entry, kept));
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

impl MapOps for HashOfMaps {
    fn batches(&self) -> Batches {
        Batches::Take
    }

    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        lookup::Elements::value(self, self.table.found(self.table.find(key)?), cpu)
    }

    fn lookup_function(&self) -> Option<LookupFunction> {
        Some(LookupFunction::of_table(self, false))
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        ahead::of_table(self)
    }

    fn look_up_bytes(&self, fill: Fill) -> u64 {
        self.table.look_up_bytes(fill)
    }

    fn frees_values(&self) -> bool {
        true
    }

    fn check_inner(&self, map: &MapSpec) -> Result<(), Mismatch> {
        self.template.check(map)
    }

    fn inner_maps(&self) -> Option<&dyn InnerMaps> {
        Some(&self.kept)
    }

    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let kept = self.kept.lock();
        out.extend(kept.maps.get(key).ok_or(Errno::ENOENT)?.map.id().to_ne_bytes());
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        self.put(key, self.template.map_of(value)?, mode)
    }

    fn set_with(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let map = self.template.map_of(value)?;
        self.put(key, map, UpdateMode::from_flags(flags)?)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let mut kept = self.kept.lock();
        if !self.table.lock(key).remove() {
            return Err(Errno::ENOENT);
        }
        let old = kept.maps.remove(key);
        drop(kept);
        retire(old);
        Ok(())
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Table(&self.table)
    }
}
