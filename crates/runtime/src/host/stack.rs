//! The stack of the interpreters.

use std::alloc::{self, handle_alloc_error};
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use crate::stack::{MAX_FRAMES, STACK_FRAME};

/// Most tail calls of one run (`MAX_TAIL_CALL_CNT`).
pub const MAX_TAIL_CALLS: u32 = 33;

/// Frames of the interpreters' stack: each tail called program may make calls of its own.
const STACK_FRAMES: usize = MAX_FRAMES * (MAX_TAIL_CALLS as usize + 1);

/// The stack of all functions, reused from run to run. Atomics, because programs access it by address.
pub struct Stack(Box<[AtomicU64]>);

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}

impl Default for Stack {
    /// Zeroed pages of the system, which are committed when they are used.
    fn default() -> Self {
        const WORDS: usize = STACK_FRAMES * STACK_FRAME / 8;
        let stack = <[AtomicU64]>::new_box_zeroed_with_elems(WORDS);
        Self(stack.unwrap_or_else(|_| handle_alloc_error(alloc::Layout::new::<[AtomicU64; WORDS]>())))
    }
}

impl Stack {
    /// Address past the end of the stack.
    #[inline]
    pub fn top(&self) -> u64 {
        self.0.as_ptr_range().end as u64
    }

    /// Zeroes the stack frame of the function at a call depth, which starts at 0.
    #[inline]
    pub fn clear_frame(&self, depth: usize) {
        let words = STACK_FRAME / 8;
        let end = self.0.len() - depth * words;
        self.0[end - words..end].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Eight bytes of the stack frame at a call depth; word 0 is the one below the frame pointer.
    pub fn word(&self, depth: usize, word: usize) -> Option<u64> {
        let below = (depth * STACK_FRAME / 8).checked_add(word)?.checked_add(1)?;
        let index = self.0.len().checked_sub(below)?;
        self.0.get(index).map(|word| word.load(Ordering::Relaxed))
    }
}
