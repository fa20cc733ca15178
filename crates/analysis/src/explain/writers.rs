//! The instructions that wrote memory.

use std::collections::HashMap;

/// Number of an instruction of a run, rising.
pub(crate) type StepId = u32;

/// Stands for what was before the run, or is not known.
pub(crate) const NONE: StepId = StepId::MAX;

/// Bytes of a word.
const WORD: u64 = 8;

/// The last instruction that wrote each byte.
#[derive(Default)]
pub(crate) struct Writers {
    words: HashMap<u64, [StepId; WORD as usize]>,
}

impl Writers {
    /// Records that an instruction wrote bytes.
    pub(crate) fn set(&mut self, address: u64, len: u64, step: StepId) {
        for address in address..address.saturating_add(len) {
            let word = self.words.entry(address / WORD).or_insert([NONE; WORD as usize]);
            word[(address % WORD) as usize] = step;
        }
    }

    /// Forgets who wrote bytes.
    pub(crate) fn clear(&mut self, address: u64, len: u64) {
        if self.words.is_empty() {
            return;
        }
        for word in address / WORD..address.saturating_add(len).div_ceil(WORD) {
            self.words.remove(&word);
        }
    }

    /// The instructions that wrote bytes, each once.
    pub(crate) fn of(&self, address: u64, len: u64) -> Vec<StepId> {
        let mut steps = Vec::new();
        for address in address..address.saturating_add(len) {
            let step = self.words.get(&(address / WORD)).map_or(NONE, |word| word[(address % WORD) as usize]);
            if step != NONE && !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }
}
