//! Look-ups ahead: the cache lines that look-ups will touch, brought closer for many keys at once.
//!
//! A [`Walk`] is the place of one look-up between two of its cache lines. [`AheadFunction`] begins one: it asks for the first line, the bucket of
//! a hash or the root of a trie, and waits for nothing. [`Walks::finish`] takes all walks a step further, from a line that has come meanwhile to the
//! next one, until none is left. A walk reads indexes only, and changes nothing: no element is found, and none is marked as used. What it
//! reads may be about to be reused for another element, and every number that it finds is checked against the bounds of its table.

use std::ptr::NonNull;

use crate::lookup::Elements;
use crate::lpm_trie::LpmTrie;
use crate::map_ops::MapOps;
use crate::routes::Ahead;
use crate::slab::{WORD, prefetch_bytes};
use crate::words;

/// Most walks at a time: four for each packet of a burst. Further ones are not begun.
const MOST: usize = 4 * 64;

/// Keys of up to so many bytes are walked for.
const LONGEST_KEY: usize = 64;

/// What a walk knows at its place.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The hash of a key, whose bucket was asked for.
    Hash(u64),
    /// An address, whose entry in the root of a trie was asked for.
    Address(u32),
    /// The next place in a trie.
    Route(Ahead),
}

/// The next step of a walk in a map on a CPU.
///
/// # Safety
/// The address must be that of a living map of the function's type.
type Step = unsafe fn(map: u64, state: State, cpu: usize) -> Option<State>;

#[derive(Clone, Copy)]
struct Walk {
    step: Step,
    map: u64,
    state: State,
}

/// The walks of a burst.
pub struct Walks {
    cpu: usize,
    walks: Vec<Walk>,
}

impl Default for Walks {
    fn default() -> Self {
        Self { cpu: 0, walks: Vec::with_capacity(MOST) }
    }
}

impl std::fmt::Debug for Walks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walks").field("cpu", &self.cpu).field("walks", &self.walks.len()).finish()
    }
}

impl Walks {
    /// Prepares for look-ups on the CPU of a number; walks that were not finished are forgotten.
    #[inline]
    pub fn begin(&mut self, cpu: usize) {
        self.cpu = cpu;
        self.walks.clear();
    }

    #[inline(always)]
    fn push(&mut self, walk: Walk) {
        if self.walks.len() < MOST {
            self.walks.push(walk);
        }
    }

    /// Takes all walks to their ends.
    ///
    /// # Safety
    /// The maps of all functions that were called since [`begin`](Self::begin) must be alive.
    pub unsafe fn finish(&mut self) {
        while !self.walks.is_empty() {
            self.walks.retain_mut(|walk| {
                // SAFETY: the map is one that a function was called for, which knew its type.
                match unsafe { (walk.step)(walk.map, walk.state, self.cpu) } {
                    Some(state) => {
                        walk.state = state;
                        true
                    }
                    None => false,
                }
            });
        }
    }
}

/// A function that begins a walk for a key, for code that calls it in place of `bpf_map_lookup_elem`.
#[derive(Clone, Copy, Debug)]
pub struct AheadFunction {
    /// Gives 0: `context`, the address of the key, the address of [`Walks`].
    ///
    /// # Safety
    /// The context must be the one beside, and its map alive; the map's key size of bytes must be readable at the address of the key;
    /// nothing else uses the walks meanwhile.
    pub function: unsafe extern "C" fn(context: u64, key: u64, walks: u64) -> u64,
    /// The function for keys that fit a word, which is passed by value, as in [`LookupFunction::by_word`](crate::LookupFunction::by_word).
    ///
    /// # Safety
    /// The context must be the one beside, and its map alive; nothing else uses the walks meanwhile.
    pub by_word: Option<unsafe extern "C" fn(context: u64, key: u64, walks: u64) -> u64>,
    /// First argument of the functions; valid as long as the map lives.
    pub context: u64,
}

impl AheadFunction {
    /// The functions of a kind with a table; `None` for keys that are too long.
    pub(crate) fn of_table<E: Elements>(elements: &E) -> Option<Self> {
        let key_size = elements.table().key_size();
        let function: unsafe extern "C" fn(u64, u64, u64) -> u64 = match key_size {
            0..=WORD => return Some(Self::new(elements, by_address::<E>, Some(by_word::<E>))),
            16 => by_words::<E, 2>,
            24 => by_words::<E, 3>,
            32 => by_words::<E, 4>,
            40 => by_words::<E, 5>,
            ..=LONGEST_KEY => by_address::<E>,
            _ => return None,
        };
        Some(Self::new(elements, function, None))
    }

    /// The functions for routes.
    pub(crate) fn of_routes(map: &LpmTrie) -> Self {
        Self::new(map, route_by_address, Some(route))
    }

    /// The functions of an array: they ask for the value itself.
    pub(crate) fn of_array<M: MapOps>(map: &M) -> Self {
        Self::new(map, element_by_address::<M>, Some(element::<M>))
    }

    fn new<M>(
        map: &M,
        function: unsafe extern "C" fn(u64, u64, u64) -> u64,
        by_word: Option<unsafe extern "C" fn(u64, u64, u64) -> u64>,
    ) -> Self {
        Self { function, by_word, context: std::ptr::from_ref(map) as u64 }
    }
}

/// # Safety
/// As for [`AheadFunction::function`].
#[inline(always)]
unsafe fn begin<E: Elements>(context: u64, words: impl Iterator<Item = u64>, walks: u64) -> u64 {
    // SAFETY: the caller vouches for both.
    let (elements, walks) = unsafe { (&*(context as *const E), &mut *(walks as *mut Walks)) };
    let hash = elements.table().ahead(words);
    walks.push(Walk { step: to_slots::<E>, map: context, state: State::Hash(hash) });
    0
}

/// # Safety
/// See [`AheadFunction::by_word`].
unsafe extern "C" fn by_word<E: Elements>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for all of it.
    unsafe { begin::<E>(context, [key].into_iter(), walks) }
}

/// # Safety
/// See [`AheadFunction::function`]; keys have so many words.
unsafe extern "C" fn by_words<E: Elements, const WORDS: usize>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for all of it.
    unsafe { begin::<E>(context, words::load_words::<WORDS>(key).into_iter(), walks) }
}

/// # Safety
/// See [`AheadFunction::function`].
unsafe extern "C" fn by_address<E: Elements>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for the context.
    let size = unsafe { &*(context as *const E) }.table().key_size();
    let mut copy = [0; LONGEST_KEY];
    let Some(copy) = copy.get_mut(..size) else { return 0 };
    // SAFETY: the caller vouches for all of it.
    unsafe {
        words::load_bytes(copy, key);
        begin::<E>(context, words::as_words(copy), walks)
    }
}

/// From the bucket to the slots, and to values that lie elsewhere.
///
/// # Safety
/// See [`Step`].
unsafe fn to_slots<E: Elements>(map: u64, state: State, cpu: usize) -> Option<State> {
    // SAFETY: the caller vouches for the map.
    let elements = unsafe { &*(map as *const E) };
    if let State::Hash(hash) = state {
        elements.table().ahead_of_slots(hash, |slot| elements.prefetch_value(slot, cpu));
    }
    None
}

/// # Safety
/// See [`AheadFunction::by_word`]; keys have 8 bytes.
unsafe extern "C" fn route(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for both.
    let (map, walks) = unsafe { (&*(context as *const LpmTrie), &mut *(walks as *mut Walks)) };
    if let Some((routes, address)) = map.route_of(key) {
        routes.ahead(address);
        walks.push(Walk { step: along_route, map: context, state: State::Address(address) });
    }
    0
}

/// # Safety
/// See [`AheadFunction::function`]; keys have 8 bytes.
unsafe extern "C" fn route_by_address(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for all of it.
    unsafe {
        let [key] = words::load_words::<1>(key);
        route(context, key, walks)
    }
}

/// From line to line of a trie, and to the prefix.
///
/// # Safety
/// See [`Step`].
unsafe fn along_route(map: u64, state: State, _cpu: usize) -> Option<State> {
    // SAFETY: the caller vouches for the map.
    let map = unsafe { &*(map as *const LpmTrie) };
    let routes = map.routes()?;
    let next = match state {
        State::Address(address) => routes.ahead_of_root(address),
        State::Route(ahead) => routes.ahead_of_line(ahead),
        State::Hash(_) => None,
    };
    match next? {
        Ahead::Slot(slot) => {
            map.prefetch_slot(slot);
            None
        }
        ahead => Some(State::Route(ahead)),
    }
}

/// # Safety
/// See [`AheadFunction::by_word`]; keys have 4 bytes.
unsafe extern "C" fn element<M: MapOps>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for both.
    let (map, walks) = unsafe { (&*(context as *const M), &*(walks as *const Walks)) };
    let [key, ..] = words::halves_of(key);
    if let Some(value) = map.lookup(&key, walks.cpu) {
        prefetch_value(value, map.user_value_size());
    }
    0
}

/// # Safety
/// See [`AheadFunction::function`]; keys have 4 bytes.
unsafe extern "C" fn element_by_address<M: MapOps>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the caller vouches for all of it.
    unsafe {
        let [key] = words::key_of_half_word(words::load_half_word(key));
        element::<M>(context, key, walks)
    }
}

/// Brings a value closer.
#[inline(always)]
pub(crate) fn prefetch_value(value: NonNull<u8>, bytes: usize) {
    prefetch_bytes(value.addr().get(), bytes);
}
