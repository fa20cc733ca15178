//! The map: identity, specification and storage.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_spec::{Errno, MapFlags, MapSpec};

use crate::cpu_owners::CpuOwners;
use crate::create::{CreateErrorKind, Request};
use crate::described::Described;
use crate::freeze::Freeze;
use crate::inner::{InnerMaps, Mismatch};
use crate::lookup::LookupFunction;
use crate::map_ops::{Batches, MapOps, MapTarget};
use crate::mode::{LOCK, UpdateMode};
use crate::ring_reader::RingReader;
use crate::timer::Timers;
use crate::words;

/// Users of a map.
#[derive(Default)]
pub(crate) struct Users(Mutex<usize>);

impl Users {
    pub(crate) fn lock(&self) -> MutexGuard<'_, usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last map number of this process.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

/// The maps of this process, by number.
fn all_maps() -> MutexGuard<'static, BTreeMap<u32, Weak<Map>>> {
    static MAPS: Mutex<BTreeMap<u32, Weak<Map>>> = Mutex::new(BTreeMap::new());
    MAPS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Map {
    fn drop(&mut self) {
        all_maps().remove(&self.id);
        self.forget_programs();
    }
}

/// A map, as user space uses it; [`for_programs`](Self::for_programs) gives the side of programs. The address is the handle of
/// programs, which read the fields of `struct bpf_map` there.
#[repr(C)]
pub struct Map {
    _described: Described,
    pub(super) id: u32,
    pub(super) spec: MapSpec,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    pub(super) freeze: Freeze,
    /// Whether programs may change values and elements.
    pub(super) programs_may_write: bool,
    /// Of the storage.
    pub(super) lookup_function: Option<LookupFunction>,
    users: Users,
    /// Of a per-CPU map, or one of such maps.
    pub(super) cpu_owners: Option<Arc<CpuOwners>>,
    pub(super) storage: Box<dyn MapOps>,
}

impl Map {
    /// A map of a request that was checked, with the storage of its kind.
    pub(crate) fn new(request: Request<'_>, storage: Box<dyn MapOps>) -> Result<Arc<Self>, CreateErrorKind> {
        let (limits, spec) = (request.limits, request.spec);
        let is_per_cpu = |spec: &MapSpec| spec.kind.is_per_cpu();
        let has_values_of_cpus = is_per_cpu(&spec) || spec.inner.as_deref().is_some_and(is_per_cpu);
        let cpu_owners = has_values_of_cpus.then(|| Arc::new(CpuOwners::new(limits.cpus)));
        let last = LAST_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| id.checked_add(1));
        let last = last.map_err(|_| CreateErrorKind::NoIds)?;
        let map = Arc::new(Self {
            _described: Described::new(&spec, last + 1),
            id: last + 1,
            key_size: spec.key_size as usize,
            value_size: spec.value_size as usize,
            programs_may_write: !spec.flags.contains(MapFlags::RDONLY_PROG) && storage.programs_may_write(),
            spec,
            freeze: Freeze::default(),
            lookup_function: storage.lookup_function(),
            users: Users::default(),
            cpu_owners,
            storage,
        });
        all_maps().insert(map.id, Arc::downgrade(&map));
        Ok(map)
    }

    /// The map of a number, if it still exists.
    #[must_use]
    pub fn by_id(id: u32) -> Option<Arc<Self>> {
        all_maps().get(&id)?.upgrade()
    }

    /// Bytes that all its elements take, as its specification declares them.
    #[must_use]
    pub fn declared_bytes(&self) -> usize {
        let element = self.key_size.saturating_add(self.user_value_size());
        element.saturating_mul(self.spec().max_entries as usize)
    }

    /// Number of the map, unique in the process and never 0.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The specification of the map, without initial elements; `max_entries` and `flags` as completed at creation
    /// (a perf event array gets an entry per CPU, a device map `BPF_F_RDONLY_PROG`).
    #[inline]
    #[must_use]
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// An update with `BPF_F_LOCK`, in place, under the element's lock; false where there is no element yet.
    pub(super) fn change_locked(&self, key: &[u8], value: &[u8], flags: u64) -> Result<bool, Errno> {
        let mode = UpdateMode::from_flags(flags & !LOCK)?;
        let lock = self.spec.spin_lock().ok_or(Errno::EINVAL)?;
        self.storage.change_locked(key, value, mode, lock.offset as usize)
    }

    /// A value with its special fields zeroed, as those of a new element are; arrays keep theirs. `None` where it has
    /// none.
    #[inline]
    pub(super) fn without_special(&self, value: &[u8]) -> Option<Vec<u8>> {
        (!self.spec.special.is_empty()).then(|| {
            let mut value = value.to_vec();
            self.hide_special(&mut value);
            value
        })
    }

    pub(super) fn hide_special(&self, value: &mut [u8]) {
        for value in value.chunks_mut(self.value_stride().max(1)) {
            words::hide(value, &self.spec.special);
        }
    }

    /// Whether a map can be an element of this map of maps. As such it is set by its [`id`](Self::id).
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn check_inner(&self, map: &Self) -> Result<(), Mismatch> {
        self.storage.check_inner(&map.spec)
    }

    /// Target of `bpf_redirect_map` for an index or key; `None` if there is no element, or the kind has no targets.
    #[must_use]
    pub fn redirect_target(&self, index: u32) -> Option<MapTarget> {
        self.storage.redirect_target(index)
    }

    pub(crate) fn batches(&self) -> Batches {
        self.storage.batches()
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// Releases all programs that the map holds.
    pub(crate) fn forget_programs(&self) {
        if let Some(array) = self.storage.prog_array() {
            array.clear();
        }
        if let Some(timers) = self.timers() {
            timers.clear();
        }
        if let Some(programs) = self.storage.entry_programs() {
            programs.clear();
        }
    }

    /// Whether entries or values can hold programs, or maps that can.
    pub(crate) fn holds_programs(&self) -> bool {
        self.storage.prog_array().is_some()
            || self.timers().is_some()
            || self.storage.entry_programs().is_some()
            || self.inner_maps().is_some()
    }

    /// The maps in it.
    pub(crate) fn inner_maps(&self) -> Option<&dyn InnerMaps> {
        self.storage.inner_maps()
    }

    pub(crate) fn timers(&self) -> Option<&Timers> {
        self.storage.timers()
    }

    /// The offset of an address in the value that it lies in.
    pub(crate) fn offset_in_value(&self, address: usize) -> Option<usize> {
        self.storage.offset_in_value(address)
    }

    /// The key of the value at an address.
    pub(crate) fn key_at(&self, value: usize) -> Option<Vec<u8>> {
        self.storage.key_at(value)
    }

    /// The reader of a ring buffer's records; `None` for other kinds.
    #[must_use]
    pub fn ring_buffer(&self) -> Option<RingReader<'_>> {
        self.storage.ring_buffer().map(RingReader::new)
    }

    /// Bytes of a value in [`lookup`](Self::lookup) and [`insert`](Self::insert): the value size, but in the per-CPU kinds the
    /// value size rounded up to 8, once for each CPU.
    #[must_use]
    pub fn user_value_size(&self) -> usize {
        self.storage.user_value_size()
    }

    /// Bytes from one CPU's value to the next in the values of [`lookup`](Self::lookup) and [`insert`](Self::insert) of the per-CPU
    /// kinds; for other kinds the value size.
    #[must_use]
    pub fn value_stride(&self) -> usize {
        if self.spec.kind.is_per_cpu() { self.value_size.next_multiple_of(8) } else { self.value_size }
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map").field("id", &self.id).field("spec", &self.spec).finish_non_exhaustive()
    }
}
