//! The map: identity, specification and storage.

mod program;
mod user;

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_spec::{Errno, InnerLength, MapFlags, MapSpec};
use thiserror::Error;

use crate::cpu_owners::CpuOwners;
use crate::create::{CreateError, CreateErrorKind, Limits, Request};
use crate::described::Described;
use crate::freeze::Freeze;
use crate::lookup::LookupFunction;
use crate::map_of_maps::InnerMaps;
use crate::map_ops::{self, Batches, LOCK, MapOps, Mode};
use crate::map_user::Users;
use crate::ringbuf::RingReader;
use crate::timer::Timers;
use crate::words;

pub use program::ProgramSide;
pub use user::{KeyCursor, Keys};

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
    id: u32,
    spec: MapSpec,
    key_size: usize,
    value_size: usize,
    freeze: Freeze,
    /// Of the storage.
    lookup_function: Option<LookupFunction>,
    users: Users,
    /// Of a per-CPU map, or one of such maps.
    cpu_owners: Option<Arc<CpuOwners>>,
    storage: Box<dyn MapOps>,
}

/// Access of programs to the values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramAccess {
    /// Load from them: all maps but those with `BPF_F_WRONLY_PROG`.
    pub read: bool,
    /// Store to them, and update and delete elements: all maps but those with `BPF_F_RDONLY_PROG`, and
    /// socket maps.
    pub write: bool,
}

/// Layout of the values of an array: the value of index `i` on CPU `c` is at `base + c * cpu_stride + i * stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Value of index 0 on CPU 0; good as long as the map lives.
    pub base: NonNull<u8>,
    /// Bytes from one index to the next.
    pub stride: usize,
    /// Bytes from one CPU to the next; 0 for arrays that are not per CPU.
    pub cpu_stride: usize,
    /// Number of indices.
    pub entries: u32,
}

/// Target of `bpf_redirect_map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectTarget {
    /// Out of an interface, through the program of that number first unless it is 0.
    Device {
        /// The interface.
        ifindex: u32,
        /// The program to run on the way out.
        program: u32,
    },
    /// To another CPU, to run the program of that number there unless it is 0.
    Cpu {
        /// The CPU.
        cpu: u32,
        /// Length of its queue in packets.
        queue_size: u32,
        /// The program to run there.
        program: u32,
    },
    /// To the socket of that number.
    Socket {
        /// The number user space stored.
        socket: u32,
    },
}

/// An initial element that the map did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("initial element {index}: {errno}")]
pub struct FillError {
    /// Position in the list.
    pub index: usize,
    /// Cause: `EINVAL` for a wrong size, otherwise the error of [`Map::update`].
    pub errno: Errno,
}

/// Why a map cannot be an element of a map of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The map holds no maps.
    #[error("it holds no maps")]
    NoMapOfMaps,
    /// The inner map differs from the template.
    #[error("the {what} of inner maps is {expected}, of this one {found}")]
    Differs {
        /// Name of the property that differs.
        what: &'static str,
        /// Value in the template.
        expected: u32,
        /// Value in this map.
        found: u32,
    },
    /// The special fields of its values differ.
    #[error("locks, timers and the like in values of inner maps are not those of this one's")]
    SpecialFields,
}

/// Compares a map with the template of inner maps (`bpf_map_meta_equal` in `kernel/bpf/map_in_map.c`).
pub(crate) fn compare_inner(like: &MapSpec, map: &MapSpec) -> Result<(), Mismatch> {
    let is_sized = match like.kind.rules().inner_length {
        InnerLength::FixedUnlessFlagged => !like.flags.contains(MapFlags::INNER_MAP),
        InnerLength::Fixed => true,
        InnerLength::Any | InnerLength::Forbidden => false,
    };
    let differs = |(what, expected, found): (&'static str, u32, u32)| {
        (expected != found).then_some(Mismatch::Differs { what, expected, found })
    };
    let first = [
        ("type", like.kind.number(), map.kind.number()),
        ("key size", like.key_size, map.key_size),
        ("value size", like.value_size, map.value_size),
        ("flags", like.flags.0, map.flags.0),
        ("max_entries", like.max_entries, if is_sized { map.max_entries } else { like.max_entries }),
    ]
    .into_iter()
    .find_map(differs);
    match first {
        Some(mismatch) => Err(mismatch),
        None if like.special != map.special => Err(Mismatch::SpecialFields),
        None => Ok(()),
    }
}

impl Map {
    /// Makes an empty map, after the kernel's checks for its kind; see [`fill`](Self::fill) for its initial
    /// elements. Declares no more memory than the limits allow.
    ///
    /// # Errors
    /// A [`CreateError`] that names the map and the first rule it breaks.
    pub fn create(spec: &MapSpec, limits: &Limits) -> Result<Arc<Self>, CreateError> {
        Self::try_create(spec, limits).map_err(|cause| CreateError {
            name: spec.name.clone(),
            kind: spec.kind,
            cause,
        })
    }

    pub(crate) fn try_create(spec: &MapSpec, limits: &Limits) -> Result<Arc<Self>, CreateErrorKind> {
        if limits.cpus == 0 {
            return Err(CreateErrorKind::NoCpus);
        }
        let mut request = Request { spec: MapSpec { contents: Vec::new(), ..spec.clone() }, limits };
        request.check_user_access()?;
        if !spec.kind.rules().has_extra {
            request.check_extra_at_most(0)?;
        }
        let storage = map_ops::open(&mut request)?;
        request.check_special_fields()?;
        if spec.kind.is_read_only() {
            request.spec.flags = request.spec.flags | MapFlags::RDONLY_PROG;
        }
        let is_per_cpu = |spec: &MapSpec| spec.kind.is_per_cpu();
        let has_values_of_cpus = is_per_cpu(spec) || spec.inner.as_deref().is_some_and(is_per_cpu);
        let cpu_owners = has_values_of_cpus.then(|| Arc::new(CpuOwners::new(limits.cpus)));
        let last = LAST_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| id.checked_add(1));
        let last = last.map_err(|_| CreateErrorKind::NoIds)?;
        let map = Arc::new(Self {
            _described: Described::new(&request.spec, last + 1),
            id: last + 1,
            key_size: request.key_size(),
            value_size: request.value_size(),
            spec: request.spec,
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
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The specification of the map, without initial elements; `max_entries` and `flags` as completed at creation
    /// (a perf event array gets an entry per CPU, a device map `BPF_F_RDONLY_PROG`).
    #[must_use]
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// The map as programs see it.
    #[inline]
    #[must_use]
    pub fn for_programs(&self) -> ProgramSide<'_> {
        ProgramSide(self)
    }

    /// An update with `BPF_F_LOCK`, in place, under the element's lock; false where there is no element yet.
    fn change_locked(&self, key: &[u8], value: &[u8], flags: u64) -> Result<bool, Errno> {
        let mode = Mode::from_flags(flags & !LOCK)?;
        let lock = self.spec.spin_lock().ok_or(Errno::EINVAL)?;
        self.storage.change_locked(key, value, mode, lock.offset as usize)
    }

    /// A value with its special fields zeroed, as those of a new element are; arrays keep theirs. `None` where it has
    /// none.
    fn without_special(&self, value: &[u8]) -> Option<Vec<u8>> {
        (!self.spec.special.is_empty()).then(|| {
            let mut value = value.to_vec();
            self.hide_special(&mut value);
            value
        })
    }

    fn hide_special(&self, value: &mut [u8]) {
        for value in value.chunks_mut(self.value_stride().max(1)) {
            words::hide(value, &self.spec.special);
        }
    }

    /// Whether a map can be an element of this map of maps. As such it is set by its [`id`](Self::id).
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn check_inner(&self, map: &Self) -> Result<(), Mismatch> {
        self.storage.check_inner(map)
    }

    /// Target of `bpf_redirect_map` for an index or key; `None` if there is no element, or the kind has no targets.
    #[must_use]
    pub fn redirect_target(&self, index: u32) -> Option<RedirectTarget> {
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

    /// Bytes of a value in [`lookup`](Self::lookup) and [`update`](Self::update): the value size, but in the per-CPU kinds the
    /// value size rounded up to 8, once for each CPU.
    #[must_use]
    pub fn user_value_size(&self) -> usize {
        self.storage.user_value_size()
    }

    /// Bytes from one CPU's value to the next in the values of [`lookup`](Self::lookup) and [`update`](Self::update) of the per-CPU
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
