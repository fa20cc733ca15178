//! Look-ups ahead: the cache lines that look-ups will touch, brought closer for many keys at once.
//!
//! A [`Walk`] is the place of one look-up between two of its cache lines. [`AheadFunction`] begins one: it asks for the first line, the bucket of
//! a hash or the root of a trie, and waits for nothing. [`Walks::finish`] takes all walks a step further, from a line that has come meanwhile to the
//! next one, until none is left. A walk reads indexes only, and changes nothing: no element is found, and none is marked as used. What it
//! reads may be about to be reused for another element, and every number that it finds is checked against the bounds of its table.

use crate::routes::Ahead;

/// Most walks at a time: four for each packet of a burst. Further ones are not begun.
const MOST: usize = 4 * 64;

/// What a walk knows at its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
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
pub(crate) type Step = unsafe fn(map: u64, state: State, cpu: usize) -> Option<State>;

/// A look-up between two of its steps.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) step: Step,
    pub(crate) map: u64,
    pub(crate) state: State,
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

    /// The CPU that values are looked up for.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, walk: Walk) {
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
    /// Functions of a map.
    pub(crate) fn new<M>(
        map: &M,
        function: unsafe extern "C" fn(u64, u64, u64) -> u64,
        by_word: Option<unsafe extern "C" fn(u64, u64, u64) -> u64>,
    ) -> Self {
        Self { function, by_word, context: std::ptr::from_ref(map) as u64 }
    }
}
