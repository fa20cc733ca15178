//! The interface of a map kind, and the constructors of all kinds. A new kind is a file of its own and an arm of [`constructor`].

use std::ptr::NonNull;

use paceline_spec::{Errno, MapKind};

use crate::create::{CreateErrorKind, Request};
use crate::entry_program::Kept;
use crate::fill::Fill;
use crate::lookup::LookupFunction;
use crate::map::{ArrayLayout, Map, Mismatch, RedirectTarget};
use crate::map_of_maps::InnerMaps;
use crate::prog_array::ProgArray;
use crate::ringbuf::RingBuffer;
use crate::timer::Timers;
use crate::walks::AheadFunction;
use crate::{
    array, bloom_filter, cpumap, devmap, hash, lpm_trie, map_of_maps, perf_event_array, queue, sockmap,
    xskmap,
};

/// Checks a request by the rules of its kind and allocates the storage.
type Open = fn(&mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind>;

/// The constructor of a kind; `None` for kinds that Paceline does not have.
const fn constructor(kind: MapKind) -> Option<Open> {
    Some(match kind {
        MapKind::Array => |request| array::Array::open(request),
        MapKind::PerCpuArray => |request| array::PerCpuArray::open(request),
        MapKind::Hash => |request| hash::Hash::open(request),
        MapKind::PerCpuHash => |request| hash::PerCpuHash::open(request),
        MapKind::LruHash => |request| hash::Hash::open_lru(request),
        MapKind::LruPerCpuHash => |request| hash::PerCpuHash::open_lru(request),
        MapKind::LpmTrie => |request| lpm_trie::LpmTrie::open(request),
        MapKind::ProgArray => |request| ProgArray::open(request),
        MapKind::PerfEventArray => |request| perf_event_array::PerfEventArray::open(request),
        MapKind::DevMap => |request| devmap::DevMap::open(request),
        MapKind::DevMapHash => |request| devmap::DevMapHash::open(request),
        MapKind::CpuMap => |request| cpumap::CpuMap::open(request),
        MapKind::RingBuf => |request| RingBuffer::open(request),
        MapKind::Queue | MapKind::Stack => |request| queue::Queue::open(request),
        MapKind::BloomFilter => |request| bloom_filter::BloomFilter::open(request),
        MapKind::ArrayOfMaps => |request| map_of_maps::ArrayOfMaps::open(request),
        MapKind::HashOfMaps => |request| map_of_maps::HashOfMaps::open(request),
        MapKind::XskMap => |request| xskmap::XskMap::open(request),
        MapKind::SockMap => |request| sockmap::SockMap::open(request),
        MapKind::SockHash => |request| sockmap::SockHash::open(request),
        _ => return None,
    })
}

const _: () = {
    let mut index = 0;
    while index < MapKind::ALL.len() {
        let kind = MapKind::ALL[index];
        assert!(
            constructor(kind).is_some() == kind.is_supported(),
            "a map kind is supported by its row in `paceline-spec` exactly if it has a constructor here"
        );
        index += 1;
    }
};

/// The storage of a new map, after the kernel's checks for its kind.
pub(crate) fn open(request: &mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
    let kind = request.spec.kind;
    constructor(kind).ok_or(CreateErrorKind::Unsupported(kind))?(request)
}

/// The batches of elements that a kind has (`map_lookup_batch` and its like in the kernel's `struct bpf_map_ops`); each variant
/// includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Batches {
    None,
    /// Look-ups and updates.
    Update,
    /// Deletes as well.
    Delete,
    /// Look-ups that delete as well.
    Take,
}

/// `BPF_NOEXIST`, among the flags of an update.
pub(crate) const NO_EXIST: u64 = 1;
/// `BPF_EXIST`
pub(crate) const EXIST: u64 = 2;
/// `BPF_F_LOCK`: hold the value's spin lock meanwhile.
pub(crate) const LOCK: u64 = 4;

/// When an update may happen, from the low bits of its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `BPF_ANY`
    Any,
    /// `BPF_NOEXIST`
    NoExist,
    /// `BPF_EXIST`
    Exist,
}

impl Mode {
    /// `EINVAL` for unknown flags, [`LOCK`] among them.
    pub(crate) fn from_flags(flags: u64) -> Result<Self, Errno> {
        match flags {
            0 => Ok(Self::Any),
            NO_EXIST => Ok(Self::NoExist),
            EXIST => Ok(Self::Exist),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whether an element that is there (or is not) may be updated (or made).
    pub(crate) fn check(self, exists: bool) -> Result<(), Errno> {
        match (self, exists) {
            (Self::NoExist, true) => Err(Errno::EEXIST),
            (Self::Exist, false) => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}

/// The operations of a kind. Keys and values have the sizes of the map: [`Map`](crate::Map) checks that, and the
/// access flags, before it calls. What a kind does not name it refuses as the kernel does.
pub(crate) trait MapOps: Send + Sync {
    /// A program's look-up: the address of the value.
    fn lookup(&self, _key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        None
    }

    /// The look-up as a function, for kinds where calling it from generated code is faster.
    fn lookup_function(&self) -> Option<LookupFunction> {
        None
    }

    /// The function that begins a look-up ahead, for kinds whose look-ups wait for memory if they are large.
    fn ahead_function(&self) -> Option<AheadFunction> {
        None
    }

    /// Bytes of memory that look-ups of random keys touch, about; 0 for kinds without an [`ahead_function`](Self::ahead_function).
    fn look_up_bytes(&self, _: Fill) -> u64 {
        0
    }

    /// Whether a found value can belong to another element later: programs that use the map run pinned.
    fn frees_values(&self) -> bool {
        false
    }

    /// The number of the socket under a key, in maps of sockets.
    fn socket(&self, _key: &[u8]) -> Option<u32> {
        None
    }

    /// The key of the element that a look-up of another key finds, in kinds that match keys.
    fn matching_key(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// A program's update, with unchecked flags: kinds differ in the order of their checks. The verifier lets no program
    /// update a kind without this use.
    fn update(&self, _key: &[u8], _value: &[u8], _flags: u64, _cpu: usize) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// A change of the element that is there, with the lock at offset `lock` of its value held meanwhile; false where there
    /// is none. For the kinds whose values may hold locks.
    fn change_locked(&self, _key: &[u8], _value: &[u8], _mode: Mode, _lock: usize) -> Result<bool, Errno> {
        Err(Errno::EINVAL)
    }

    /// User space's look-up under the element's lock, at an offset in the value; appends the value. For the kinds whose values may
    /// have a lock.
    fn get_locked(&self, _key: &[u8], _out: &mut Vec<u8>, _lock: usize) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// A program's delete.
    fn delete(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Adds a value without a key, by a program or user space.
    fn push(&self, _value: &[u8], _flags: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Takes the next value without a key; zeros where there is none.
    fn pop(&self, _value: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Copies the next value without a key; a Bloom filter tells whether it has the given one.
    fn peek(&self, _value: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Appends all values without a key, the oldest first.
    fn values(&self, _out: &mut Vec<Vec<u8>>) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Whether values that cannot be listed were added.
    fn has_values(&self) -> bool {
        false
    }

    /// User space's batches of elements.
    fn batches(&self) -> Batches {
        Batches::None
    }

    /// Error of listing keys, for kinds without keys.
    fn has_keys(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// Whether a map may be an element.
    fn check_inner(&self, _map: &Map) -> Result<(), Mismatch> {
        Err(Mismatch::NoMapOfMaps)
    }

    /// Whether a range lies in one value.
    fn contains(&self, _address: usize, _len: usize) -> bool {
        false
    }

    /// The offset of an address in the value it lies in, for the kinds whose values may hold locks.
    fn offset_in_value(&self, _address: usize) -> Option<usize> {
        None
    }

    /// Programs of entries, for kinds that have them.
    fn entry_programs(&self) -> Option<&Kept> {
        None
    }

    /// Inner maps, for kinds that hold maps.
    fn inner_maps(&self) -> Option<&dyn InnerMaps> {
        None
    }

    /// The timers of its values, for the kinds whose values may hold them.
    fn timers(&self) -> Option<&Timers> {
        None
    }

    /// The key of the value at an address, for the same kinds. Of a value that is not pinned it may be another element's.
    fn key_at(&self, _value: usize) -> Option<Vec<u8>> {
        None
    }

    /// Whether programs may write to found values, apart from flags.
    fn programs_may_write(&self) -> bool {
        true
    }

    /// Bytes of a value as user space gives and takes it.
    fn user_value_size(&self) -> usize;

    /// User space's look-up; appends the value.
    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno>;

    /// User space's update.
    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno>;

    /// User space's update with unchecked flags: kinds differ in the order of their checks.
    fn set_with(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.set(key, value, Mode::from_flags(flags)?)
    }

    /// User space's delete.
    fn remove(&self, key: &[u8]) -> Result<(), Errno>;

    /// User space's look-up and delete in one, so that no update comes between them; appends the value.
    fn take(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Appends the keys of one part of the map; false past the last part.
    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool;

    /// Number of entries that are set, for the kinds of references that have all indices from the start.
    fn set_entries(&self) -> Option<usize> {
        None
    }

    /// The key that follows in the map's order, the first one where the given one is not in it.
    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>>;

    /// Address inside the only value of a global-data array.
    fn direct_value(&self, _offset: u32) -> Result<NonNull<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Layout of the values of an array.
    fn array_layout(&self) -> Option<ArrayLayout> {
        None
    }

    /// Target of `bpf_redirect_map`.
    fn redirect_target(&self, _index: u32) -> Option<RedirectTarget> {
        None
    }

    /// Whether there is such a target, for a program.
    fn has_target(&self, index: u32) -> bool {
        self.redirect_target(index).is_some()
    }

    /// The ring buffer behind the interface.
    fn ring_buffer(&self) -> Option<&RingBuffer> {
        None
    }

    /// The program array behind the interface.
    fn prog_array(&self) -> Option<&ProgArray> {
        None
    }
}
