//! Look-ups as functions that generated code calls.

use std::ptr::NonNull;

use crate::table::Table;
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
    /// What the function takes first; good as long as the map lives.
    pub context: u64,
    /// Whether the number of the CPU matters.
    pub takes_cpu: bool,
}

/// A kind whose elements are those of a table.
pub(crate) trait Elements {
    fn table(&self) -> &Table;
    fn value(&self, slot: u32, cpu: usize) -> Option<NonNull<u8>>;
}

impl LookupFunction {
    /// That of a kind with a table, made for the size of its keys.
    pub(crate) fn of_table<E: Elements>(elements: &E, takes_cpu: bool) -> Self {
        let function = match elements.table().key_size() {
            4 => find_short::<E>,
            8 => find_words::<E, 1>,
            16 => find_words::<E, 2>,
            24 => find_words::<E, 3>,
            32 => find_words::<E, 4>,
            40 => find_words::<E, 5>,
            _ => find_any::<E>,
        };
        Self { function, context: std::ptr::from_ref(elements) as u64, takes_cpu }
    }
}

fn address<E: Elements>(elements: &E, slot: Option<u32>, cpu: u64) -> u64 {
    slot.and_then(|slot| elements.value(slot, cpu as usize)).map_or(0, |value| value.as_ptr() as u64)
}

/// # Safety
/// See [`LookupFunction::function`]; keys have 4 bytes.
unsafe extern "C" fn find_short<E: Elements>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the caller vouches for context and key.
    let (elements, key) = unsafe { (&*(context as *const E), words::load_half_word(key)) };
    address(elements, elements.table().find_words(&words::key_of_half_word(key)), cpu)
}

/// # Safety
/// See [`LookupFunction::function`]; keys have so many words.
unsafe extern "C" fn find_words<E: Elements, const WORDS: usize>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the caller vouches for context and key.
    let (elements, key) = unsafe { (&*(context as *const E), words::load_words::<WORDS>(key)) };
    address(elements, elements.table().find_words(&key), cpu)
}

/// Keys of up to so many bytes are copied without memory of the heap.
const SHORT: usize = 64;

/// # Safety
/// See [`LookupFunction::function`].
unsafe extern "C" fn find_any<E: Elements>(context: u64, key: u64, cpu: u64) -> u64 {
    // SAFETY: the caller vouches for the context.
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
    // SAFETY: the caller vouches for the key.
    unsafe { words::load_bytes(copy, key) };
    address(elements, table.find(copy), cpu)
}
