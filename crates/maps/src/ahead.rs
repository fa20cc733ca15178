//! Look-ups ahead in tables.

use crate::lookup::Elements;
use crate::slab::WORD;
use crate::walks::{AheadFunction, State, Walk, Walks};
use crate::words;

/// Keys of up to so many bytes are looked up ahead.
const LONGEST_KEY: usize = 64;

/// The functions of a kind with a table; `None` for keys that are too long.
pub(crate) fn of_table<E: Elements>(elements: &E) -> Option<AheadFunction> {
    let key_size = elements.table().key_size();
    let function: unsafe extern "C" fn(u64, u64, u64) -> u64 = match key_size {
        _ if key_size <= WORD => by_word::<E>,
        16 => by_words::<E, 2>,
        24 => by_words::<E, 3>,
        32 => by_words::<E, 4>,
        40 => by_words::<E, 5>,
        _ if key_size <= LONGEST_KEY => by_address::<E>,
        _ => return None,
    };
    Some(AheadFunction::new(elements, function, key_size <= WORD))
}

/// # Safety
/// As for [`AheadFunction::function`].
#[inline(always)]
unsafe fn begin<E: Elements>(context: u64, words: impl Iterator<Item = u64>, walks: u64) -> u64 {
    // SAFETY: both are guaranteed by the caller.
    let (elements, walks) = unsafe { (&*(context as *const E), &mut *(walks as *mut Walks)) };
    let hash = elements.table().ahead(words);
    walks.push(Walk { step: to_slots::<E>, map: context, state: State::Hash(hash) });
    0
}

/// # Safety
/// See [`AheadFunction::function`]; the key is a value.
unsafe extern "C" fn by_word<E: Elements>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: all of it is guaranteed by the caller.
    unsafe { begin::<E>(context, [key].into_iter(), walks) }
}

/// # Safety
/// See [`AheadFunction::function`]; keys have so many words.
unsafe extern "C" fn by_words<E: Elements, const WORDS: usize>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: all of it is guaranteed by the caller.
    unsafe { begin::<E>(context, words::load_words::<WORDS>(key).into_iter(), walks) }
}

/// # Safety
/// See [`AheadFunction::function`].
unsafe extern "C" fn by_address<E: Elements>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: the context is guaranteed by the caller.
    let size = unsafe { &*(context as *const E) }.table().key_size();
    let mut copy = [0; LONGEST_KEY];
    let Some(copy) = copy.get_mut(..size) else { return 0 };
    // SAFETY: all of it is guaranteed by the caller.
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
    // SAFETY: the map is guaranteed by the caller.
    let elements = unsafe { &*(map as *const E) };
    if let State::Hash(hash) = state {
        elements.table().ahead_of_slots(hash, |slot| elements.prefetch_value(slot, cpu));
    }
    None
}
