//! Memory of objects that programs read, with the layout of the kernel's structure.

use std::sync::atomic::{AtomicU32, Ordering};

/// Words aligned to 8 bytes. Programs read them by address and write some of them concurrently, so they are atomic.
#[derive(Debug)]
#[repr(align(8))]
pub(crate) struct Record<const WORDS: usize>([AtomicU32; WORDS]);

impl<const WORDS: usize> Default for Record<WORDS> {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; WORDS])
    }
}

impl<const WORDS: usize> Clone for Record<WORDS> {
    fn clone(&self) -> Self {
        Self(std::array::from_fn(|i| AtomicU32::new(self.word(i * 4))))
    }
}

impl<const WORDS: usize> Record<WORDS> {
    /// Address of the record.
    pub(crate) fn address(&self) -> *const AtomicU32 {
        self.0.as_ptr()
    }

    /// The word at an offset in bytes, a multiple of 4; 0 if out of bounds.
    pub(crate) fn word(&self, offset: usize) -> u32 {
        self.0.get(offset / 4).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn set_word(&self, offset: usize, value: u32) {
        if let Some(word) = self.0.get(offset / 4) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Copies bytes from an offset; false if they are out of bounds.
    pub(crate) fn copy(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let is_there = offset.checked_add(bytes.len()).is_some_and(|end| end <= WORDS * 4);
        if is_there {
            for (at, byte) in (offset..).zip(bytes) {
                *byte = self.word(at).to_ne_bytes()[at % 4];
            }
        }
        is_there
    }

    /// Writes bytes at any offset.
    pub(crate) fn set(&mut self, offset: usize, bytes: &[u8]) {
        for (at, byte) in (offset..).zip(bytes) {
            let Some(word) = self.0.get_mut(at / 4) else { return };
            let mut parts = word.get_mut().to_ne_bytes();
            parts[at % 4] = *byte;
            *word.get_mut() = u32::from_ne_bytes(parts);
        }
    }

    /// Sets bits of the word at an offset; returns the previous value.
    pub(crate) fn set_bits(&self, offset: usize, bits: u32) -> u32 {
        self.0.get(offset / 4).map_or(0, |word| word.fetch_or(bits, Ordering::Relaxed))
    }
}
