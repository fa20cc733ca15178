//! Look-ups as functions that generated code calls.

use std::ptr::NonNull;

use crate::slab::WORD;
use crate::table::{Found, Table};
use crate::words;

/// A function that finds the value under a key, for code that calls it instead of the helper.
#[derive(Clone, Copy, Debug)]
pub struct LookupFunction {
    /// Gives the address of the value, or 0: `context`, the address of the key, the number of the CPU.
    ///
    /// # Safety
    /// The context must be the one beside, and its map alive; the map's key size of bytes must be readable at the address
    /// of the key.
    pub function: unsafe extern "C" fn(context: u64, key: u64, cpu: u64) -> u64,
    /// The function for keys that fit a word, which is passed by value: its bytes in memory order, the others zero. Programs write keys field by
    /// field; passing the word avoids the store-forwarding stall of loading it from memory.
    ///
    /// # Safety
    /// The context must be the one beside, and its map alive.
    pub by_word: Option<unsafe extern "C" fn(context: u64, key: u64, cpu: u64) -> u64>,
    /// First argument of the functions; valid as long as the map lives.
    pub context: u64,
    /// Whether the number of the CPU matters.
    pub takes_cpu: bool,
}

/// A kind whose elements are those of a table.
pub(crate) trait Elements {
    fn table(&self) -> &Table;
    fn value(&self, found: Found<'_>, cpu: usize) -> Option<NonNull<u8>>;

    /// Brings the value of a slot closer, if it is not in the slot.
    fn prefetch_value(&self, _slot: u32, _cpu: usize) {}
}

impl LookupFunction {
    /// The functions of a kind with a table, specialized by key size.
    pub(crate) fn of_table<E: Elements>(elements: &E, takes_cpu: bool) -> Self {
        let table = elements.table();
        let (function, by_word): (_, unsafe extern "C" fn(u64, u64, u64) -> u64) = if table.has_state() {
            (of_size::<E, 1>(table.key_size()), find_word::<E, 1>)
        } else {
            (of_size::<E, 0>(table.key_size()), find_word::<E, 0>)
        };
        let by_word = (table.key_size() <= WORD).then_some(by_word);
        Self { function, by_word, context: std::ptr::from_ref(elements) as u64, takes_cpu }
    }
}

/// The function for keys of a size, in tables with so many words of state.
fn of_size<E: Elements, const STATE: usize>(key_size: usize) -> unsafe extern "C" fn(u64, u64, u64) -> u64 {
    match key_size {
        4 => find_short::<E, STATE>,
        8 => find_words::<E, 1, STATE>,
        16 => find_words::<E, 2, STATE>,
        24 => find_words::<E, 3, STATE>,
        32 => find_words::<E, 4, STATE>,
        40 => find_words::<E, 5, STATE>,
        _ => find_any::<E>,
    }
}

#[inline(always)]
fn address<E: Elements>(elements: &E, found: Option<Found<'_>>, cpu: u64) -> u64 {
    found.and_then(|found| elements.value(found, cpu as usize)).map_or(0, |value| value.as_ptr() as u64)
}

/// # Safety
/// See [`LookupFunction::function`]; keys have 4 bytes.
unsafe extern "C" fn find_short<E: Elements, const STATE: usize>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: context and key are guaranteed by the caller.
    let (elements, key) = unsafe { (&*(context as *const E), words::load_half_word(key)) };
    address(elements, elements.table().find_words::<1, STATE>(&words::key_of_half_word(key)), cpu)
}

/// # Safety
/// See [`LookupFunction::by_word`].
unsafe extern "C" fn find_word<E: Elements, const STATE: usize>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the context is guaranteed by the caller.
    let elements = unsafe { &*(context as *const E) };
    address(elements, elements.table().find_words::<1, STATE>(&[key]), cpu)
}

/// # Safety
/// See [`LookupFunction::function`]; keys have so many words.
unsafe extern "C" fn find_words<E: Elements, const WORDS: usize, const STATE: usize>(
    context: u64,
    key: u64,
    cpu: u64,
) -> u64 {
    // SAFETY: context and key are guaranteed by the caller.
    let (elements, key) = unsafe { (&*(context as *const E), words::load_words::<WORDS>(key)) };
    address(elements, elements.table().find_words::<WORDS, STATE>(&key), cpu)
}

/// Keys of up to so many bytes are copied without memory of the heap.
const SHORT: usize = 64;

/// # Safety
/// See [`LookupFunction::function`].
unsafe extern "C" fn find_any<E: Elements>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the context is guaranteed by the caller.
    let elements = unsafe { &*(context as *const E) };
    let table = elements.table();
    let (mut short, mut long) = ([0; SHORT], Vec::new());
    let copy = match short.get_mut(..table.key_size()) {
        Some(copy) => copy,
        None => {
            long.resize(table.key_size(), 0);
            &mut long
        }
    };
    // SAFETY: the key is guaranteed by the caller.
    unsafe { words::load_bytes(copy, key) };
    address(elements, table.find(copy).map(|slot| table.found(slot)), cpu)
}
