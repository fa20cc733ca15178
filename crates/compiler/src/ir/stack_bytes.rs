//! Sets of bytes of a function's stack.

use crate::ir::types::STACK_BYTES;

/// A set of bytes; offsets are from the stack's end and negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackBytes([u64; 8]);

impl StackBytes {
    /// All bytes.
    pub(crate) const ALL: Self = Self([u64::MAX; 8]);

    /// The bytes `start..end`, as far as they lie in the stack.
    pub(crate) fn range(start: i32, end: i32) -> Self {
        let place = |offset: i32| offset.clamp(-STACK_BYTES, 0).wrapping_add(STACK_BYTES) as usize;
        let (start, end) = (place(start), place(end));
        Self(std::array::from_fn(|word| {
            let [from, to] = [start, end].map(|at| at.saturating_sub(64 * word).min(64));
            if from < to { u64::MAX >> (64 - (to - from)) << from } else { 0 }
        }))
    }

    /// The bytes of 8-byte words, numbered as in [`Function::shared`](crate::ir::Function::shared).
    pub(crate) fn of_words(words: u64) -> Self {
        let (mut bytes, mut left) = (Self::default(), words);
        while left != 0 {
            let byte = 8 * (63 - left.trailing_zeros());
            bytes.0[byte as usize / 64] |= 0xff << (byte % 64);
            left &= left - 1;
        }
        bytes
    }

    /// The union.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The bytes of this set that are not in the other.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The bytes that both have.
    pub(crate) fn intersection(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The 8-byte words that have a byte of the set, numbered as in [`Function::shared`](crate::ir::Function::shared).
    pub(crate) fn words(self) -> u64 {
        let has = |number: u32| self.0[7 - number as usize / 8] >> (56 - 8 * (number % 8)) & 0xff != 0;
        (0..64).filter(|number| has(*number)).fold(0, |words, number| words | 1 << number)
    }

    /// Whether both have a byte.
    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_stack() {
        assert_eq!(StackBytes::range(-512, 0), StackBytes::ALL);
        assert_eq!(StackBytes::range(-1000, 1000), StackBytes::ALL);
        assert_eq!(StackBytes::range(-4, -4), StackBytes::default());
        let word = StackBytes::range(-8, -4);
        assert!(word.intersects(StackBytes::range(-5, -4)) && !word.intersects(StackBytes::range(-4, 0)));
        assert_eq!(StackBytes::range(-8, 0).minus(word), StackBytes::range(-4, 0));
        assert_eq!(StackBytes::of_words(0b101), StackBytes::range(-8, 0).union(StackBytes::range(-24, -16)));
        assert_eq!(word.union(StackBytes::range(-4, 0)), StackBytes::range(-8, 0));
        assert_eq!(StackBytes::range(-8, 0).intersection(StackBytes::range(-12, -4)), word);
        assert_eq!(StackBytes::range(-9, -4).words(), 0b11);
        assert_eq!(StackBytes::range(-512, -504).words(), 1 << 63);
    }
}
