//! Look-ups ahead: the cache lines that look-ups will touch, brought closer for many keys at once.
//!
//! A [`Walk`] is the place of one look-up between two of its cache lines. [`AheadFunction`] begins one: it asks for the first line, the bucket of
//! a hash or the root of a trie, and waits for nothing. [`Walks::finish`] takes all walks a step further, from a line that has come meanwhile to the
//! next one, until none is left. A walk reads indexes only, and changes nothing: no element is found, and none is marked as used. What it
//! reads may be about to be reused for another element, and every number that it finds is checked against the bounds of its table.

use crate::routes::Ahead;

/// Most walks at a time, which bounds their memory: the look-ups of a slice (four) for the packets of a burst (64). Further ones are not begun.
const MOST: usize = 256;

/// Most steps of a walk: one in a hash; the root, two lines of each of two nodes, and the prefix in a trie.
const MOST_STEPS: usize = 6;

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

    /// Takes all walks to their ends, in a fixed number of steps: what a walk reads without the caller being pinned may lead in a circle.
    ///
    /// # Safety
    /// The maps of all functions that were called since [`begin`](Self::begin) must be alive.
    pub unsafe fn finish(&mut self) {
        for _ in 0..MOST_STEPS {
            if self.walks.is_empty() {
                break;
            }
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
    /// Gives 0: `context`, the key or its address, the address of [`Walks`].
    ///
    /// # Safety
    /// The context must be the one beside, and its map alive; where the key is an address, the map's key size of bytes must be readable
    /// there; nothing else uses the walks meanwhile.
    pub function: unsafe extern "C" fn(context: u64, key: u64, walks: u64) -> u64,
    /// Whether the key is passed by value, as in [`LookupFunction::by_word`](crate::LookupFunction::by_word): those that fit a word are.
    pub by_word: bool,
    /// First argument of the function; valid as long as the map lives.
    pub context: u64,
}

impl AheadFunction {
    /// The function of a map.
    pub(crate) fn new<M>(
        map: &M,
        function: unsafe extern "C" fn(u64, u64, u64) -> u64,
        by_word: bool,
    ) -> Self {
        Self { function, by_word, context: std::ptr::from_ref(map) as u64 }
    }
}

// Maps are made outside of the model checker.
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
