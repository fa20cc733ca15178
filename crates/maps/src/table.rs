//! Keys to slots: the table behind the hash kinds.
//!
//! A slot is a cell of one slab: the key, rounded up to words, then as many words of payload as the kind wants; before them
//! a word of [state](crate::occupied) in the tables that give up elements. The [index](crate::index) finds the slot of a key. Look-ups
//! take no lock; changes take that of the key's stripe.
//!
//! An element is replaced by another slot with the same key, so that a reader sees the old value or the new one, never
//! half of each. A slot that was replaced or removed is not written again until all bursts are over that may have found
//! it ([`crate::slots`]).

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_epoch::{Deferral, Domain, defer_drops};
use paceline_spec::{Errno, MapFlags};

use crate::create::Request;
use crate::fill::Fill;
use crate::hashing::KeyHash;
use crate::index::{Index, Place};
use crate::occupied::{Occupied, State};
use crate::slab::{NoMemory, Shape, Slab, WORD, prefetch_bytes};
use crate::slots::{Caller, Permit, SlotCount, Slots};
use crate::timer::Timers;
use crate::words;

/// Stripes per CPU: so many that two workers seldom want the same.
const STRIPES_PER_CPU: usize = 32;
const MAX_STRIPES: usize = 4096;

/// Places visited in one part of an iteration.
const PLACES_PER_PART: usize = 4096;

/// Parameters of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableShape {
    pub(crate) key_size: usize,
    /// Words of payload behind each key.
    pub(crate) payload_words: usize,
    pub(crate) max_entries: u32,
    pub(crate) cpus: usize,
    /// Most bytes that it may take.
    pub(crate) memory: u64,
    /// Hash with a fixed seed (`BPF_F_ZERO_SEED`).
    pub(crate) zero_seed: bool,
    /// Whether it gives up elements to make room.
    pub(crate) lru: bool,
}

impl TableShape {
    /// The shape that a request needs, with this number of words of payload.
    pub(crate) fn of(request: &Request<'_>, payload_words: usize) -> Self {
        Self {
            key_size: request.key_size(),
            payload_words,
            max_entries: request.spec.max_entries,
            cpus: request.limits.cpus,
            memory: request.limits.memory,
            zero_seed: request.spec.flags.contains(MapFlags::ZERO_SEED),
            lru: request.spec.kind.is_lru(),
        }
    }

    fn stripes(self) -> usize {
        let most = (self.max_entries as usize).clamp(1, MAX_STRIPES);
        self.cpus.saturating_mul(STRIPES_PER_CPU).clamp(1, most).next_power_of_two()
    }

    fn words_before_payload(self) -> usize {
        usize::from(self.lru) + words::words_for(self.key_size)
    }

    fn slot_words(self) -> usize {
        self.words_before_payload() + self.payload_words
    }

    fn count(self, beside: u64) -> SlotCount {
        let bytes = (self.slot_words() as u64 * WORD as u64).saturating_add(beside);
        // One more than there are workers, for user space.
        SlotCount::new(self.max_entries, bytes, self.cpus.saturating_add(1), self.memory)
    }

    fn slab(self, beside: u64) -> Option<Shape> {
        Some(Shape { lanes: 1, cells: self.slots(beside)?, words: self.slot_words() })
    }

    /// Slots of the table, where each has so many bytes beside it.
    pub(crate) fn slots(self, beside: u64) -> Option<usize> {
        Some(self.count(beside).total()? as usize)
    }

    /// Bytes that a full table takes, its index included.
    pub(crate) fn bytes(self, beside: u64) -> Option<u64> {
        let occupied = if self.lru { Occupied::bytes(self.slots(beside)?) } else { 0 };
        let slab = u64::try_from(self.slab(beside)?.bytes()?).ok()?;
        slab.checked_add(Index::bytes(self.max_entries))?.checked_add(occupied)
    }
}

/// Result of a look-up: the slot, and its payload, which is not empty in kinds that keep values in it.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) slot: u32,
    pub(crate) payload: &'a [AtomicU64],
}

impl Found<'_> {
    /// Address of the payload, for programs.
    #[inline(always)]
    pub(crate) fn address(self) -> NonNull<u8> {
        NonNull::from(self.payload).cast()
    }
}

/// A lock on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Stripe(Mutex<()>);

/// A locked stripe. Values of removed elements are dropped after the unlock.
struct StripeGuard<'a> {
    _lock: MutexGuard<'a, ()>,
    _drops: Option<Deferral>,
}

/// The table.
pub(crate) struct Table {
    max_entries: u32,
    slab: Slab,
    index: Index,
    slots: Slots,
    key_size: usize,
    key_words: usize,
    /// Words before a slot's key: one in tables that give up elements.
    state_words: usize,
    /// In these also which slots may have one.
    occupied: Option<Occupied>,
    stripes: Box<[Stripe]>,
    hash: KeyHash,
    /// Timers of the values in the payloads.
    timers: Option<Timers>,
}

impl Table {
    /// `beside` is how many bytes there are of each slot elsewhere.
    pub(crate) fn new(shape: TableShape, beside: u64) -> Result<Self, NoMemory> {
        const TOO_BIG: NoMemory = NoMemory { bytes: u64::MAX };
        let slab = Slab::new(shape.slab(beside).ok_or(TOO_BIG)?)?;
        let occupied = shape.lru.then(|| Occupied::new(slab.shape().cells)).transpose()?;
        Ok(Self {
            max_entries: shape.max_entries,
            occupied,
            slab,
            index: Index::new(shape.max_entries)?,
            slots: Slots::new(shape.count(beside)).ok_or(TOO_BIG)?,
            key_size: shape.key_size,
            key_words: words::words_for(shape.key_size),
            state_words: usize::from(shape.lru),
            stripes: std::iter::repeat_with(Stripe::default).take(shape.stripes()).collect(),
            hash: KeyHash::new(shape.zero_seed),
            timers: None,
        })
    }

    /// A table whose payloads are values with timers.
    pub(crate) fn with_timers(self, timers: Option<Timers>) -> Self {
        Self { timers, ..self }
    }

    pub(crate) fn timers(&self) -> Option<&Timers> {
        self.timers.as_ref()
    }

    /// Ends the timer of a slot.
    fn end_timer(&self, slot: u32) {
        if let Some(timers) = &self.timers
            && let Some(value) = self.payload_address(slot)
        {
            timers.forget(value.addr().get());
        }
    }

    /// Gives back the slot of an element that has gone.
    fn retire(&self, slot: u32) {
        self.end_timer(slot);
        self.slots.retire(slot);
    }

    /// The key of the slot whose payload is at an address.
    pub(crate) fn key_of_payload(&self, address: usize) -> Option<Vec<u8>> {
        let slot = self.slab.index_of(address)? as u32;
        let mut key = Vec::with_capacity(self.key_size);
        self.append_key_start(slot, self.key_size, &mut key);
        Some(key)
    }

    pub(crate) fn key_size(&self) -> usize {
        self.key_size
    }

    fn payload_start(&self) -> usize {
        self.state_words + self.key_words
    }

    fn key(&self, slot: u32) -> Option<&[AtomicU64]> {
        self.slab.row(slot as usize)?.get(self.state_words..self.payload_start())
    }

    /// The words of a slot's key, of a slot that there is.
    fn words_of_key(&self, slot: u32) -> &[AtomicU64] {
        self.key(slot).unwrap_or_default()
    }

    /// The payload of a slot.
    #[inline]
    pub(crate) fn payload(&self, slot: u32) -> &[AtomicU64] {
        self.slab.words(0, slot as usize).get(self.payload_start()..).unwrap_or_default()
    }

    /// Four bytes of a slot's payload.
    pub(crate) fn payload_half_word(&self, slot: u32, offset: usize) -> Option<&AtomicU32> {
        self.slab.half_word(0, slot as usize, (self.payload_start() * WORD).checked_add(offset)?)
    }

    /// Address of a slot's payload, for programs.
    #[inline]
    pub(crate) fn payload_address(&self, slot: u32) -> Option<NonNull<u8>> {
        let cell = self.slab.cell(0, slot as usize)?;
        Some(cell.map_addr(|address| address.saturating_add(self.payload_start() * WORD)))
    }

    /// Whether a range lies in the first `size` bytes of one payload.
    pub(crate) fn payload_holds(&self, address: usize, len: usize, size: usize) -> bool {
        let start = self.payload_start() * WORD;
        self.slab.holds(address, len, start, start + size)
    }

    /// The offset of an address in its slot's payload.
    pub(crate) fn offset_in_payload(&self, address: usize) -> Option<usize> {
        self.slab.offset_in_cell(address)?.checked_sub(self.payload_start() * WORD)
    }

    /// The slot of a key. It is the key's until the caller's burst is over; without one another thread may give it to
    /// another key at once.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hash.of_bytes(key);
        let slot = self.index.find(hash, |slot| words::equal(self.key(slot)?, key).then_some(slot))?;
        self.touch(slot);
        Some(slot)
    }

    /// [`find`](Self::find) specialized by words of the key, the last one padded with zeros, and words of slot state.
    #[inline(always)]
    pub(crate) fn find_words<const WORDS: usize, const STATE: usize>(
        &self,
        key: &[u64; WORDS],
    ) -> Option<Found<'_>> {
        self.index.find(self.hash(key.iter().copied()), |slot| {
            let (before, payload) = self.slab.row(slot as usize)?.split_at_checked(STATE + WORDS)?;
            let (state, words) = before.split_at_checked(STATE)?;
            let differs = words.iter().zip(key).fold(0, |bits, (word, key)| bits | word.load(Relaxed) ^ *key);
            if differs != 0 {
                return None;
            }
            state.iter().for_each(|state| State(state).touch());
            Some(Found { slot, payload })
        })
    }

    /// Begins a look-up ahead: brings the key's bucket closer, and gives the key's hash.
    #[inline(always)]
    pub(crate) fn ahead(&self, words: impl Iterator<Item = u64>) -> u64 {
        let hash = self.hash(words);
        self.index.prefetch(hash);
        hash
    }

    /// Goes on with the hash, when the bucket is there: brings the slots closer that may have the key.
    #[inline(always)]
    pub(crate) fn ahead_of_slots(&self, hash: u64, more: impl Fn(u32)) {
        self.index.visit_candidates(hash, |slot| {
            self.prefetch_slot(slot);
            more(slot);
        });
    }

    /// Brings a slot closer.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        if let Some(cell) = self.slab.cell(0, slot as usize) {
            prefetch_bytes(cell.addr().get(), self.slab.stride());
        }
    }

    /// Slots that were in use so far, which are used again first, or one for each element of a full table.
    pub(crate) fn slots_at(&self, fill: Fill) -> u32 {
        match fill {
            Fill::Now => self.used_slots(),
            Fill::Full => self.max_entries,
        }
    }

    /// Their bytes.
    pub(crate) fn slot_bytes(&self, fill: Fill) -> u64 {
        u64::from(self.slots_at(fill)) * self.slab.stride() as u64
    }

    /// Their bytes and those of the buckets that lead there.
    pub(crate) fn look_up_bytes(&self, fill: Fill) -> u64 {
        self.slot_bytes(fill) + self.index.bytes_for(self.slots_at(fill))
    }

    /// Look-up result of a slot.
    #[inline]
    pub(crate) fn found(&self, slot: u32) -> Found<'_> {
        Found { slot, payload: self.payload(slot) }
    }

    /// Whether slots have a word of state.
    pub(crate) fn has_state(&self) -> bool {
        self.state_words != 0
    }

    /// Notes that an element was used.
    #[inline(always)]
    pub(crate) fn touch(&self, slot: u32) {
        if let Some(state) = self.state(slot) {
            state.touch();
        }
    }

    /// The state of a slot, in tables that give up elements.
    #[inline(always)]
    fn state(&self, slot: u32) -> Option<State<'_>> {
        if self.state_words == 0 {
            return None;
        }
        self.slab.words(0, slot as usize).first().map(State)
    }

    /// Looks at the slot of a key while no other thread changes it; no use of it.
    #[inline]
    pub(crate) fn inspect<T>(&self, key: &[u8], look: impl FnOnce(u32) -> T) -> Option<T> {
        let entry = self.lock(key);
        entry.slot().map(look)
    }

    /// Keeps all other threads from changing the key until the result is dropped.
    pub(crate) fn lock<'a>(&'a self, key: &'a [u8]) -> Locked<'a> {
        let hash = self.hash.of_bytes(key);
        let stripe = self.lock_stripe(hash);
        let found =
            self.index.locate(hash, |slot| self.key(slot).is_some_and(|words| words::equal(words, key)));
        Locked { table: self, hash, found, _stripe: stripe }
    }

    fn lock_stripe(&self, hash: u64) -> StripeGuard<'_> {
        let stripe = &self.stripes[(hash >> 16) as usize & (self.stripes.len() - 1)];
        // The removal of an element cancels its timer, which retires the callback.
        let drops = self.timers.as_ref().map(|_| defer_drops());
        StripeGuard { _lock: stripe.0.lock().unwrap_or_else(PoisonError::into_inner), _drops: drops }
    }

    /// A slot for an element to add or replace, with its key; its payload has the bytes of an earlier element.
    /// `ENOMEM` when workers in their bursts may be using all that are left.
    pub(crate) fn spare(&self, key: &[u8], caller: Caller) -> Result<Spare<'_>, Errno> {
        let slot = self.slots.take(caller).ok_or(Errno::ENOMEM)?;
        // A worker may have made one in the old element after that had gone.
        self.end_timer(slot);
        words::fill(self.words_of_key(slot), key);
        Ok(Spare { table: self, slot: Some(slot) })
    }

    /// The right to add an element; `None` when the table is full.
    pub(crate) fn permit(&self) -> Option<Permit<'_>> {
        self.slots.permit()
    }

    /// Visits the slots of a part of the table; false past the last part. Each element that is there all the time is visited
    /// once.
    pub(crate) fn visit(&self, part: usize, mut visit: impl FnMut(u32)) -> bool {
        let start = part.saturating_mul(PLACES_PER_PART);
        if start >= self.index.places() {
            return false;
        }
        let mut reader = Domain::global().reader();
        let _pin = reader.pin();
        let mut from = start;
        while let Some((place, slot)) = self.index.next(from, start + PLACES_PER_PART) {
            visit(slot);
            from = place + 1;
        }
        true
    }

    /// Appends the keys of a part of the table.
    pub(crate) fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.visit(part, |slot| self.append_key_start(slot, self.key_size, out))
    }

    /// Looks at the slot after that of this key in the table's order, the first one where the key is not there.
    pub(crate) fn next<T>(&self, after: Option<&[u8]>, look: impl FnOnce(u32) -> T) -> Option<T> {
        let from = after.and_then(|key| Some(self.lock(key).found?.0.number() + 1)).unwrap_or(0);
        let mut reader = Domain::global().reader();
        let _pin = reader.pin();
        let (_, slot) = self.index.next(from, usize::MAX)?;
        Some(look(slot))
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
        words::append(out, self.words_of_key(slot), len);
    }

    /// The first four bytes of a slot's key.
    pub(crate) fn first_half_word_of_key(&self, slot: u32) -> u32 {
        let [a, b, c, d, ..] = words::load_first(self.words_of_key(slot)).to_ne_bytes();
        u32::from_ne_bytes([a, b, c, d])
    }

    /// Slots from this one on were never used.
    pub(crate) fn used_slots(&self) -> u32 {
        self.slots.used()
    }

    /// Slots that may have elements, in tables that give them up.
    pub(crate) fn occupied(&self) -> Option<&Occupied> {
        self.occupied.as_ref()
    }

    /// The hash of the element that a slot has.
    pub(crate) fn hash_of_element(&self, slot: u32) -> Option<u64> {
        self.state(slot)?.hash()
    }

    /// Takes away the mark that says that an element was used; whether there was one.
    pub(crate) fn take_mark(&self, slot: u32) -> bool {
        self.state(slot).is_some_and(State::forget)
    }

    /// Removes the element that a slot has under this hash, and gives its permit; `None` when it has none.
    pub(crate) fn evict(&self, slot: u32, hash: u64) -> Option<Permit<'_>> {
        let _stripe = self.lock_stripe(hash);
        // Elements of this stripe come and go under its lock only.
        if self.state(slot).and_then(State::hash) != Some(hash) {
            return None;
        }
        let (place, _) = self.index.locate(hash, |found| found == slot)?;
        Some(self.unlink(hash, place, slot))
    }

    fn unlink(&self, hash: u64, place: Place, slot: u32) -> Permit<'_> {
        self.index.remove(hash, place);
        self.set_state(slot, None);
        self.retire(slot);
        self.slots.permit_of_removed()
    }

    fn set_state(&self, slot: u32, hash: Option<u64>) {
        if let Some(state) = self.state(slot) {
            state.set(hash);
            if let (Some(_), Some(occupied)) = (hash, &self.occupied) {
                occupied.set(slot);
            }
        }
    }

    #[inline(always)]
    fn hash(&self, words: impl Iterator<Item = u64>) -> u64 {
        self.hash.of(words)
    }
}

/// A slot with a key, in no table until it is put there; given back otherwise.
pub(crate) struct Spare<'a> {
    table: &'a Table,
    slot: Option<u32>,
}

impl Spare<'_> {
    /// Its number.
    pub(crate) fn slot(&self) -> u32 {
        self.slot.unwrap_or_default()
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.table.slots.put_back(slot);
        }
    }
}

/// What became of an element that was to be put into a slot of the thread's own lane.
pub(crate) enum Own<'a> {
    /// It is in the table.
    Put,
    /// The lane has no slot.
    NoSlot,
    /// The table is full; the element is in the slot.
    NoPermit(Spare<'a>),
}

/// A key that this thread alone may change.
pub(crate) struct Locked<'a> {
    table: &'a Table,
    hash: u64,
    found: Option<(Place, u32)>,
    _stripe: StripeGuard<'a>,
}

impl<'a> Locked<'a> {
    /// The key's slot.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.found.map(|(_, slot)| slot)
    }

    /// Gives the key the slot, instead of its own if it has one. `E2BIG` when it has none and the table is full; then the
    /// slot can be used again. A permit that the caller has may be used.
    pub(crate) fn put(
        &mut self,
        spare: &mut Spare<'_>,
        permit: &mut Option<Permit<'a>>,
    ) -> Result<(), Errno> {
        let table = self.table;
        let Some(slot) = spare.slot else { return Err(Errno::EINVAL) };
        match self.found {
            Some((place, old)) => {
                table.set_state(slot, Some(self.hash));
                table.touch(slot);
                table.index.replace(place, slot);
                table.set_state(old, None);
                table.retire(old);
            }
            None => {
                let permit = permit.take().or_else(|| table.slots.permit());
                permit.ok_or(Errno::E2BIG)?.spend();
                table.set_state(slot, Some(self.hash));
                table.index.insert(self.hash, slot);
            }
        }
        spare.slot = None;
        Ok(())
    }

    /// Gives the key a slot of this thread's lane, with the payload that `write` writes, instead of its own if it has one. Tables with
    /// timers have no slots for it: these may end only without the lane's lock.
    pub(crate) fn put_own(&mut self, key: &[u8], write: impl FnOnce(u32)) -> Own<'a> {
        let table = self.table;
        if table.timers.is_some() {
            return Own::NoSlot;
        }
        let mut lane = table.slots.own_lane();
        let Some(slot) = lane.take() else { return Own::NoSlot };
        words::fill(table.words_of_key(slot), key);
        write(slot);
        let Some((place, old)) = self.found else {
            drop(lane);
            let Some(permit) = table.slots.permit() else {
                return Own::NoPermit(Spare { table, slot: Some(slot) });
            };
            permit.spend();
            table.set_state(slot, Some(self.hash));
            table.index.insert(self.hash, slot);
            return Own::Put;
        };
        table.set_state(slot, Some(self.hash));
        table.touch(slot);
        table.index.replace(place, slot);
        table.set_state(old, None);
        lane.retire(old);
        Own::Put
    }

    /// Takes the key out; false where it had no slot.
    pub(crate) fn remove(&mut self) -> bool {
        match self.found.take() {
            Some((place, slot)) => {
                drop(self.table.unlink(self.hash, place, slot));
                true
            }
            None => false,
        }
    }
}
