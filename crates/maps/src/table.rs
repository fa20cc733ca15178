//! Keys to slots: the table behind the hash kinds.
//!
//! A slot is a cell of one slab: the key, rounded up to words, then as many words of payload as the kind wants.
//! Shards of hashbrown tables find the slot of a key; each shard has its own lock, which look-ups share and
//! changes own. A slot's address outlives its element, so a program's stale pointer reads memory of this map and
//! nothing else. As in the kernel's preallocated hash a deleted slot may be handed out again at once.

use std::hash::{BuildHasher, Hasher};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;
use paceline_spec::{Errno, MapFlags};

use crate::create::Request;
use crate::slab::{NoMemory, Shape, Slab, WORD};
use crate::words;

/// End of the list of free slots.
const NONE: u32 = u32::MAX;

/// Shards per CPU: several, so that two workers seldom meet in one.
const SHARDS_PER_CPU: usize = 4;
const MAX_SHARDS: usize = 256;

/// What a table is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShape {
    pub(crate) key_size: usize,
    /// Words of payload behind each key.
    pub(crate) payload_words: usize,
    pub(crate) max_entries: u32,
    pub(crate) cpus: usize,
    /// Hash with a fixed seed (`BPF_F_ZERO_SEED`).
    pub(crate) zero_seed: bool,
}

impl TableShape {
    /// What a request asks for, with so many words of payload.
    pub(crate) fn of(request: &Request<'_>, payload_words: usize) -> Self {
        Self {
            key_size: request.key_size(),
            payload_words,
            max_entries: request.spec.max_entries,
            cpus: request.limits.cpus,
            zero_seed: request.spec.flags.contains(MapFlags::ZERO_SEED),
        }
    }

    fn shards(self) -> usize {
        self.cpus.saturating_mul(SHARDS_PER_CPU).clamp(1, MAX_SHARDS).next_power_of_two()
    }

    fn slab(self) -> Option<Shape> {
        Some(Shape {
            lanes: 1,
            cells: self.slots()?,
            words: words::words_for(self.key_size) + self.payload_words,
        })
    }

    /// Slots of the table: one for each element, and each shard's spare.
    pub(crate) fn slots(self) -> Option<usize> {
        usize::try_from(self.max_entries).ok()?.checked_add(self.shards())
    }

    /// Bytes that a full table takes, its index included.
    pub(crate) fn bytes(self) -> Option<u64> {
        // hashbrown keeps one slot in eight free, and a tag byte beside each number.
        let buckets = (u64::from(self.max_entries) * 8).div_ceil(7).next_power_of_two();
        let index = buckets * (size_of::<u32>() as u64 + 1);
        u64::try_from(self.slab()?.bytes()?).ok()?.checked_add(index)
    }
}

/// One lock and what it guards, on cache lines of its own.
#[repr(align(128))]
struct Shard(RwLock<Slots>);

struct Slots {
    table: HashTable<u32>,
    /// A slot that no key owns: a changed element moves there, and its old slot is the next spare. So a pointer
    /// that a program holds keeps the old value, as in the kernel (`extra_elems` in hashtab.c), and a reader of
    /// ours sees the old value or the new one, never half of each.
    spare: u32,
}

/// Slots without an element: those given back, linked through the first word of their keys, then those never used.
struct Free {
    head: u32,
    fresh: u32,
}

/// The table.
pub(crate) struct Table {
    slab: Slab,
    key_size: usize,
    key_words: usize,
    max_entries: u32,
    shards: Box<[Shard]>,
    free: Mutex<Free>,
    seed: SeedableRandomState,
}

impl Table {
    pub(crate) fn new(shape: TableShape) -> Result<Self, NoMemory> {
        let slab = Slab::new(shape.slab().ok_or(NoMemory { bytes: u64::MAX })?)?;
        let spares = (shape.max_entries..).take(shape.shards());
        let shard = |spare| Shard(RwLock::new(Slots { table: HashTable::new(), spare }));
        Ok(Self {
            slab,
            key_size: shape.key_size,
            key_words: words::words_for(shape.key_size),
            max_entries: shape.max_entries,
            shards: spares.map(shard).collect(),
            free: Mutex::new(Free { head: NONE, fresh: 0 }),
            seed: if shape.zero_seed { SeedableRandomState::fixed() } else { SeedableRandomState::random() },
        })
    }

    /// The payload of a slot.
    #[inline]
    pub(crate) fn payload(&self, slot: u32) -> &[AtomicU64] {
        self.slab.words(0, slot as usize).get(self.key_words..).unwrap_or_default()
    }

    /// Four bytes of a slot's payload.
    pub(crate) fn payload_half_word(&self, slot: u32, offset: usize) -> Option<&AtomicU32> {
        self.slab.half_word(0, slot as usize, (self.key_words * WORD).checked_add(offset)?)
    }

    /// Address of a slot's payload, for programs.
    #[inline]
    pub(crate) fn payload_address(&self, slot: u32) -> Option<NonNull<u8>> {
        let cell = self.slab.cell(0, slot as usize)?;
        Some(cell.map_addr(|address| address.saturating_add(self.key_words * WORD)))
    }

    /// Whether a range lies in the first `size` bytes of one payload.
    pub(crate) fn payload_holds(&self, address: usize, len: usize, size: usize) -> bool {
        let start = self.key_words * WORD;
        self.slab.holds(address, len, start, start + size)
    }

    /// The offset of an address in its slot's payload.
    pub(crate) fn offset_in_payload(&self, address: usize) -> Option<usize> {
        self.slab.offset_in_cell(address)?.checked_sub(self.key_words * WORD)
    }

    /// The slot of a key. Once this returns another thread may give the slot to another key.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.inspect(key, |slot| slot)
    }

    /// Looks at the slot of a key while no other thread changes it.
    #[inline]
    pub(crate) fn inspect<T>(&self, key: &[u8], look: impl FnOnce(u32) -> T) -> Option<T> {
        let hash = self.hash(words::as_words(key));
        let slots = self.read(self.shard_of(hash));
        slots.table.find(hash, |&slot| self.has_key(slot, key)).map(|&slot| look(slot))
    }

    /// Keeps all other threads from the key until the result is dropped.
    pub(crate) fn lock<'a>(&'a self, key: &'a [u8]) -> Locked<'a> {
        let hash = self.hash(words::as_words(key));
        let shard = &self.shards[self.shard_of(hash)];
        let slots = shard.0.write().unwrap_or_else(PoisonError::into_inner);
        Locked { table: self, key, hash, slots }
    }

    /// Visits the slots of a part of the table, as they are at one instant; false past the last part.
    pub(crate) fn visit(&self, part: usize, visit: impl FnMut(u32)) -> bool {
        if part >= self.shards.len() {
            return false;
        }
        self.read(part).table.iter().copied().for_each(visit);
        true
    }

    /// Appends the keys of a part of the table.
    pub(crate) fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.visit(part, |slot| self.append_key_start(slot, self.key_size, out))
    }

    /// Looks at the slot after that of this key in the table's order, the first one where the key is not there.
    pub(crate) fn next<T>(&self, after: Option<&[u8]>, look: impl Fn(u32) -> T) -> Option<T> {
        let (shard, bucket) = after.and_then(|key| self.position(key)).map_or((0, 0), |(s, b)| (s, b + 1));
        (shard..self.shards.len()).find_map(|s| self.look_from(s, if s == shard { bucket } else { 0 }, &look))
    }

    /// The key after this one in the table's order.
    pub(crate) fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.next(after, |slot| {
            let mut key = Vec::with_capacity(self.key_size);
            self.append_key_start(slot, self.key_size, &mut key);
            key
        })
    }

    /// Appends the first bytes of a slot's key.
    pub(crate) fn append_key_start(&self, slot: u32, len: usize, out: &mut Vec<u8>) {
        words::append(out, self.slab.words(0, slot as usize), len);
    }

    /// Removes whatever element a slot has; false when it has none.
    pub(crate) fn evict(&self, slot: u32) -> bool {
        // The key may be changing as it is read; then the hash leads to no shard that knows the slot.
        let hash = self.hash_of_slot(slot);
        let shard = &self.shards[self.shard_of(hash)];
        let mut slots = shard.0.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(entry) = slots.table.find_entry(hash, |&found| found == slot) else { return false };
        entry.remove();
        self.give_back(slot);
        true
    }

    fn position(&self, key: &[u8]) -> Option<(usize, usize)> {
        let hash = self.hash(words::as_words(key));
        let shard = self.shard_of(hash);
        let bucket = self.read(shard).table.find_bucket_index(hash, |&slot| self.has_key(slot, key))?;
        Some((shard, bucket))
    }

    fn look_from<T>(&self, shard: usize, bucket: usize, look: impl Fn(u32) -> T) -> Option<T> {
        let slots = self.read(shard);
        let slot = (bucket..slots.table.num_buckets()).find_map(|b| slots.table.get_bucket(b))?;
        Some(look(*slot))
    }

    fn read(&self, shard: usize) -> RwLockReadGuard<'_, Slots> {
        self.shards[shard].0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn hash(&self, words: impl Iterator<Item = u64>) -> u64 {
        let mut hasher = self.seed.build_hasher();
        words.for_each(|word| hasher.write_u64(word));
        hasher.finish()
    }

    fn hash_of_slot(&self, slot: u32) -> u64 {
        let key = self.slab.words(0, slot as usize).iter().take(self.key_words);
        self.hash(key.map(|word| word.load(Relaxed)))
    }

    /// From bits that hashbrown does not use: it takes buckets from the low ones and tags from the top seven.
    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        (hash >> 40) as usize & (self.shards.len() - 1)
    }

    #[inline]
    fn has_key(&self, slot: u32, key: &[u8]) -> bool {
        words::equal(self.slab.words(0, slot as usize), key)
    }

    fn take_free(&self) -> Option<u32> {
        let mut free = self.free();
        if free.head != NONE {
            let slot = free.head;
            free.head = self.slab.words(0, slot as usize).first()?.load(Relaxed) as u32;
            return Some(slot);
        }
        (free.fresh < self.max_entries).then(|| {
            free.fresh += 1;
            free.fresh - 1
        })
    }

    fn give_back(&self, slot: u32) {
        let mut free = self.free();
        if let Some(link) = self.slab.words(0, slot as usize).first() {
            link.store(u64::from(free.head), Relaxed);
            free.head = slot;
        }
    }
}

/// A key that this thread alone may look at and change.
pub(crate) struct Locked<'a> {
    table: &'a Table,
    key: &'a [u8],
    hash: u64,
    slots: RwLockWriteGuard<'a, Slots>,
}

impl Locked<'_> {
    /// The key's slot.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.slots.table.find(self.hash, |&slot| self.table.has_key(slot, self.key)).copied()
    }

    /// Gives a key that has no slot one; its payload holds what an earlier element left. `E2BIG` when the table is
    /// full, `ENOMEM` when the index cannot grow.
    pub(crate) fn insert(&mut self) -> Result<u32, Errno> {
        let table = self.table;
        let rehash = |slot: &u32| table.hash_of_slot(*slot);
        self.slots.table.try_reserve(1, rehash).map_err(|_| Errno::ENOMEM)?;
        let slot = table.take_free().ok_or(Errno::E2BIG)?;
        self.write_key(slot);
        self.slots.table.insert_unique(self.hash, slot, rehash);
        Ok(slot)
    }

    /// Moves a key to the spare slot and returns that one; its payload holds what an earlier element left.
    /// `None` for a key without a slot.
    pub(crate) fn replace(&mut self) -> Option<u32> {
        let new = self.slots.spare;
        self.write_key(new);
        let table = self.table;
        let old = self.slots.table.find_mut(self.hash, |&slot| table.has_key(slot, self.key))?;
        let spare = std::mem::replace(old, new);
        self.slots.spare = spare;
        Some(new)
    }

    /// Takes the key out; false where it had no slot.
    pub(crate) fn remove(&mut self) -> bool {
        let table = self.table;
        let found = self.slots.table.find_entry(self.hash, |&slot| table.has_key(slot, self.key));
        let Ok(entry) = found else { return false };
        let (slot, _) = entry.remove();
        table.give_back(slot);
        true
    }

    fn write_key(&self, slot: u32) {
        words::fill(self.table.slab.words(0, slot as usize), self.key);
    }
}
