//! Bytes in and out of cells, a word at a time, and keys from where programs have them.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use paceline_btf::SpecialField;

use crate::slab::WORD;

/// Words that hold so many bytes.
pub(crate) const fn words_for(bytes: usize) -> usize {
    bytes.div_ceil(WORD)
}

/// The bytes as words in memory order; the last one is filled up with zeros.
#[inline]
pub(crate) fn as_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let last = (!rest.is_empty()).then(|| part_of_word(rest));
    whole.iter().copied().map(u64::from_ne_bytes).chain(last)
}

/// Fewer bytes than a word has, in memory order, the others zero. Built in a register: bytes stored one way and loaded
/// another wait for the store.
#[inline]
fn part_of_word(bytes: &[u8]) -> u64 {
    let little = match <[u8; 4]>::try_from(bytes) {
        Ok(four) => u64::from(u32::from_le_bytes(four)),
        Err(_) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    u64::from_ne_bytes(little.to_le_bytes())
}

/// Writes the bytes; the rest of the last word becomes zero.
#[inline]
pub(crate) fn fill(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    for (word, value) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*value), Relaxed);
    }
    if let Some(last) = words.get(whole.len())
        && !rest.is_empty()
    {
        last.store(part_of_word(rest), Relaxed);
    }
}

/// Writes the bytes; the rest of the last word stays as it is.
pub(crate) fn merge(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    fill(words, whole.as_flattened());
    if let Some(last) = words.get(whole.len())
        && !rest.is_empty()
    {
        let mut word = last.load(Relaxed).to_ne_bytes();
        word[..rest.len()].copy_from_slice(rest);
        last.store(u64::from_ne_bytes(word), Relaxed);
    }
}

/// Writes the bytes but those of special fields, which keep what they hold, whoever changes that meanwhile.
pub(crate) fn fill_around(words: &[AtomicU64], bytes: &[u8], special: &[SpecialField]) {
    if special.is_empty() {
        return fill(words, bytes);
    }
    for (index, (word, value)) in words.iter().zip(as_words(bytes)).enumerate() {
        let kept = special_bits(index, special);
        if kept == 0 {
            word.store(value, Relaxed);
        } else {
            let changed = |old: u64| Some(old & kept | value & !kept);
            // It always gives a new value.
            let _ = word.fetch_update(Relaxed, Relaxed, changed);
        }
    }
}

/// The bits of a word that belong to special fields.
fn special_bits(index: usize, special: &[SpecialField]) -> u64 {
    let mut bytes = [0u8; WORD];
    for (place, byte) in (index * WORD..).zip(&mut bytes) {
        if special.iter().any(|field| range_of(field).contains(&place)) {
            *byte = u8::MAX;
        }
    }
    u64::from_ne_bytes(bytes)
}

fn range_of(field: &SpecialField) -> Range<usize> {
    let start = field.offset as usize;
    start..start.saturating_add(field.size as usize)
}

/// Zeroes the special fields of a value.
pub(crate) fn hide(value: &mut [u8], special: &[SpecialField]) {
    for field in special {
        if let Some(bytes) = value.get_mut(range_of(field)) {
            bytes.fill(0);
        }
    }
}

/// All words become zero.
pub(crate) fn clear(words: &[AtomicU64]) {
    words.iter().for_each(|word| word.store(0, Relaxed));
}

/// Appends the first `len` bytes of the words.
pub(crate) fn append(out: &mut Vec<u8>, words: &[AtomicU64], len: usize) {
    let end = out.len() + len;
    for word in words.iter().take(words_for(len)) {
        out.extend_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    out.truncate(end);
}

/// Copies the first bytes of the words.
pub(crate) fn copy(out: &mut [u8], words: &[AtomicU64]) {
    for (bytes, word) in out.chunks_mut(WORD).zip(words) {
        bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes()[..bytes.len()]);
    }
}

/// The first word, 0 where there is none.
pub(crate) fn load_first(words: &[AtomicU64]) -> u64 {
    words.first().map_or(0, |word| word.load(Relaxed))
}

/// Whether the words equal the result of [`fill`] for the bytes.
#[inline]
pub(crate) fn equal(words: &[AtomicU64], bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let last = words.get(whole.len()).filter(|_| !rest.is_empty());
    words.iter().zip(whole).all(|(word, value)| word.load(Relaxed) == u64::from_ne_bytes(*value))
        && last.is_none_or(|last| last.load(Relaxed) == part_of_word(rest))
}

/// The one word of a key of 4 bytes.
#[inline(always)]
pub(crate) fn key_of_half_word(key: u32) -> [u64; 1] {
    [u64::from_le(u64::from(key.to_le()))]
}

/// The two halves of a word, in memory order.
#[inline(always)]
pub(crate) fn halves_of(word: u64) -> [[u8; 4]; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]]
}

/// Copies bytes of a program's, which other workers may be changing.
///
/// # Safety
/// As many bytes must be initialized memory at the address, which nothing touches but by atomics and programs.
pub(crate) unsafe fn load_bytes(bytes: &mut [u8], address: u64) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the range is guaranteed by the caller; a byte is always aligned.
        *byte = unsafe { AtomicU8::from_ptr((address as *mut u8).add(i)) }.load(Relaxed);
    }
}

/// Four bytes of a program's.
///
/// # Safety
/// As for [`load_bytes`].
#[inline(always)]
pub(crate) unsafe fn load_half_word(address: u64) -> u32 {
    let pointer = address as *mut u32;
    if pointer.is_aligned() {
        // SAFETY: the bytes are guaranteed by the caller, and the alignment was just checked.
        return unsafe { AtomicU32::from_ptr(pointer) }.load(Relaxed);
    }
    // SAFETY: the bytes are guaranteed by the caller.
    unsafe { load_unaligned_half_word(address) }
}

/// Keys may lie anywhere.
///
/// # Safety
/// As for [`load_bytes`].
#[cold]
#[inline(never)]
unsafe fn load_unaligned_half_word(address: u64) -> u32 {
    let mut bytes = [0; 4];
    // SAFETY: the bytes are guaranteed by the caller.
    unsafe { load_bytes(&mut bytes, address) };
    u32::from_ne_bytes(bytes)
}

/// So many words of a program's. Each is read as two halves: keys are mostly structures of 32-bit fields, and a word that was
/// stored in two parts would wait until both have left for the cache.
///
/// # Safety
/// As for [`load_bytes`].
#[inline(always)]
pub(crate) unsafe fn load_words<const WORDS: usize>(address: u64) -> [u64; WORDS] {
    let halves = address as *mut u32;
    if !halves.is_aligned() {
        // SAFETY: the bytes are guaranteed by the caller.
        return unsafe { load_unaligned_words(address) };
    }
    // SAFETY: the bytes are guaranteed by the caller, and the alignment was just checked; halves are half a word apart.
    let half = |i| u64::from(unsafe { AtomicU32::from_ptr(halves.add(i)) }.load(Relaxed).to_le());
    std::array::from_fn(|i| u64::from_le(half(2 * i) | half(2 * i + 1) << 32))
}

/// Cold path of [`load_words`], for addresses that are not aligned to half a word.
///
/// # Safety
/// As for [`load_bytes`].
#[cold]
#[inline(never)]
unsafe fn load_unaligned_words<const WORDS: usize>(address: u64) -> [u64; WORDS] {
    let mut words = [[0; WORD]; WORDS];
    // SAFETY: the bytes are guaranteed by the caller.
    unsafe { load_bytes(words.as_flattened_mut(), address) };
    words.map(u64::from_ne_bytes)
}
