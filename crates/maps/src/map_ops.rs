//! The interface of a map kind.

use std::ptr::NonNull;

use paceline_spec::{Errno, MapSpec};

use crate::entries::Entries;
use crate::entry_program::Kept;
use crate::fill::Fill;
use crate::indices::{index_keys, next_index};
use crate::inner::{InnerMaps, Mismatch};
use crate::lookup::LookupFunction;
use crate::mode::UpdateMode;
use crate::prog_array::ProgArray;
use crate::ringbuf::RingBuffer;
use crate::table::Table;
use crate::timer::Timers;
use crate::walks::AheadFunction;

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
pub enum MapTarget {
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

/// Where the keys of a kind are.
pub(crate) enum KeySpace<'a> {
    /// Nowhere; the error of asking for the next one.
    None(Errno),
    /// The indices below a number.
    Indices(usize),
    /// The indices of entries, of which some are set.
    Entries(&'a Entries),
    /// The keys of a table.
    Table(&'a Table),
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
    fn change_locked(
        &self,
        _key: &[u8],
        _value: &[u8],
        _mode: UpdateMode,
        _lock: usize,
    ) -> Result<bool, Errno> {
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

    /// Whether a map of a specification may be an element.
    fn check_inner(&self, _map: &MapSpec) -> Result<(), Mismatch> {
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
    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno>;

    /// User space's update with unchecked flags: kinds differ in the order of their checks.
    fn set_with(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.set(key, value, UpdateMode::from_flags(flags)?)
    }

    /// User space's delete.
    fn remove(&self, key: &[u8]) -> Result<(), Errno>;

    /// User space's look-up and delete in one, so that no update comes between them; appends the value.
    fn take(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Where its keys are.
    fn key_space(&self) -> KeySpace<'_>;

    /// Appends the keys of one part of the map; false past the last part.
    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        match self.key_space() {
            KeySpace::None(_) => false,
            KeySpace::Indices(count) => index_keys(count, part, out),
            KeySpace::Entries(entries) => index_keys(entries.count(), part, out),
            KeySpace::Table(table) => table.keys(part, out),
        }
    }

    /// The key that follows in the map's order, the first one where the given one is not in it.
    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        match self.key_space() {
            KeySpace::None(_) => None,
            KeySpace::Indices(count) => next_index(count, after),
            KeySpace::Entries(entries) => next_index(entries.count(), after),
            KeySpace::Table(table) => table.next_key(after),
        }
    }

    /// Address inside the only value of a global-data array.
    fn direct_value(&self, _offset: u32) -> Result<NonNull<u8>, Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// Layout of the values of an array.
    fn array_layout(&self) -> Option<ArrayLayout> {
        None
    }

    /// Target of `bpf_redirect_map`.
    fn redirect_target(&self, _index: u32) -> Option<MapTarget> {
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
