//! Bytes of stacks that may be read still.

use paceline_isa::{Insn, Size};
use paceline_verifier::{Base, InsnFact, MemoryFact};

/// Bytes of a function's stack.
const STACK: i64 = 512;

/// A set of bytes of a function's stack, by offset from the frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackBytes([u64; 8]);

impl StackBytes {
    const ALL: Self = Self([u64::MAX; 8]);

    /// The bytes from an offset to before another one.
    fn range(start: i64, end: i64) -> Self {
        let mut bytes = Self::default();
        for offset in start.clamp(-STACK, 0)..end.clamp(-STACK, 0) {
            let place = (offset + STACK) as usize;
            bytes.0[place / 64] |= 1 << (place % 64);
        }
        bytes
    }

    /// The words of 8 bytes that a mask tells: bit `i` stands for the word at `-8 * (i + 1)`.
    pub(crate) fn of_words(words: u64) -> Self {
        let is_set = |word: &i64| words >> word & 1 == 1;
        (0..64)
            .filter(is_set)
            .fold(Self::default(), |all, word| all.union(Self::range(-8 * (word + 1), -8 * word)))
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    pub(crate) fn contains(self, offset: i64) -> bool {
        let place = usize::try_from(offset + STACK).ok().filter(|place| *place < STACK as usize);
        // What lies elsewhere is not known.
        place.is_none_or(|place| self.0[place / 64] >> (place % 64) & 1 == 1)
    }
}

/// The bytes of the running function's stack that an instruction may read itself, and those that it writes in any case. What other functions read of
/// this stack is not among them.
pub(crate) fn uses(insn: &Insn, fact: &InsnFact) -> (StackBytes, StackBytes) {
    let none = StackBytes::default();
    let told = fact.stack_read.map_or(none, |read| StackBytes::range(read.start.into(), read.end.into()));
    match *insn {
        Insn::Store { size, .. } | Insn::StoreRelease { size, .. } => {
            let exact = fact
                .memory
                .filter(|memory| memory.base == Base::OwnStack && memory.min_offset == memory.max_offset);
            (told, exact.map_or(none, |memory| touched(&memory, size)))
        }
        Insn::Load { size, .. } | Insn::LoadAcquire { size, .. } => {
            (told.union(fact.memory.map_or(StackBytes::ALL, |memory| read(&memory, size))), none)
        }
        Insn::Atomic { .. } => {
            (told.union(fact.memory.map_or(StackBytes::ALL, |memory| read(&memory, Size::Dw))), none)
        }
        _ => (told, none),
    }
}

fn read(memory: &MemoryFact, size: Size) -> StackBytes {
    match memory.base {
        Base::OwnStack => touched(memory, size),
        // It may be a buffer on the stack.
        Base::Mixed | Base::Memory => StackBytes::ALL,
        Base::Context | Base::CallerStack | Base::Packet | Base::MapValue(_) | Base::SomeMapValue => {
            StackBytes::default()
        }
    }
}

fn touched(memory: &MemoryFact, size: Size) -> StackBytes {
    StackBytes::range(memory.min_offset, memory.max_offset.saturating_add(size.bytes() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_by_offset() {
        let bytes = StackBytes::range(-16, -8);
        assert_eq!(bytes, StackBytes::of_words(0b10));
        assert!(bytes.contains(-16) && bytes.contains(-9) && !bytes.contains(-8) && !bytes.contains(-17));
        assert_eq!(bytes.minus(StackBytes::range(-16, -12)), StackBytes::range(-12, -8));
        assert!(StackBytes::default().contains(0) && StackBytes::default().contains(-513));
    }
}
