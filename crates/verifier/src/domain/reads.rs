//! Bytes of stack slots that are read after a checkpoint, and words of a frame that must be zero on entry.
//!
//! A byte that was never written reads as zero, so a read of it requires its word to be zeroed on entry. If a state covers
//! another one, the code is walked from the covering state only: a byte that is written there and unset in the covered
//! state is read through the covering state's [`Origin`], possibly long after the covered path has ended. So the unset
//! bytes of a covered state are recorded with the origins of the covering state.

use super::state::Origin;

/// Uses of the bytes of a slot, as bit masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uses {
    /// Bytes that are read.
    read: u8,
    /// Bytes that are read, or that a store at an unknown offset or by a helper may leave unchanged.
    seen: u8,
}

impl Uses {
    const fn within(self, bytes: u8) -> Self {
        Self { read: self.read & bytes, seen: self.seen & bytes }
    }

    const fn without(self, other: Self) -> Self {
        Self { read: self.read & !other.read, seen: self.seen & !other.seen }
    }

    const fn union(self, other: Self) -> Self {
        Self { read: self.read | other.read, seen: self.seen | other.seen }
    }
}

#[derive(Clone, Copy, Debug)]
struct SlotNode {
    earlier: Origin,
    /// Bytes that are still the earlier checkpoint's, as bits.
    kept: u8,
    uses: Uses,
    /// Head of the list of implications of its uses.
    implied: Option<u32>,
}

/// An implication of a use of a slot's bytes.
#[derive(Clone, Copy, Debug)]
enum Implied {
    /// The same use of the `kept` bytes of another slot.
    Uses { of: Origin, kept: u8 },
    /// A word must be zero on entry if any of the bytes `unset` is seen.
    Zeroed { word: Word, unset: u8 },
}

/// Eight aligned bytes of the frames of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The function's index.
    pub(crate) function: usize,
    /// The word's number, from the frame pointer down.
    pub(crate) index: usize,
}

/// Reads of stack slots, by origin.
#[derive(Debug)]
pub(crate) struct StackReads {
    nodes: Vec<SlotNode>,
    work: Vec<(Origin, Uses)>,
    /// Implications, each with the previous one of the same slot.
    implied: Vec<(Implied, Option<u32>)>,
    /// For each function the words that must be zero on entry (`FunctionFact::zeroed`).
    zeroed: Vec<u64>,
}

impl StackReads {
    /// Reads of a program with so many functions.
    pub(crate) fn new(functions: usize) -> Self {
        let none = SlotNode { earlier: Origin::NONE, kept: 0, uses: Uses::default(), implied: None };
        Self { nodes: vec![none], work: Vec::new(), implied: Vec::new(), zeroed: vec![0; functions] }
    }

    /// Drops all origins, for a walk from another root.
    pub(crate) fn restart(&mut self) {
        self.nodes.truncate(1);
        self.implied.clear();
    }

    /// The origin of a slot at a new checkpoint, where `kept` of its bytes are still `earlier`'s.
    pub(crate) fn checkpoint(&mut self, earlier: Origin, kept: u8) -> Origin {
        let origin = Origin(self.nodes.len() as u32);
        self.nodes.push(SlotNode { earlier, kept, uses: Uses::default(), implied: None });
        origin
    }

    /// Bytes of memory of all origins and implications.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<SlotNode>() + self.implied.len() * size_of::<(Implied, Option<u32>)>()
    }

    /// Records a read of bytes.
    pub(crate) fn read(&mut self, origin: Origin, bytes: u8) {
        self.note(origin, Uses { read: bytes, seen: bytes });
    }

    /// Records that a store may have left bytes unchanged.
    pub(crate) fn see(&mut self, origin: Origin, bytes: u8) {
        self.note(origin, Uses { read: 0, seen: bytes });
    }

    fn note(&mut self, origin: Origin, uses: Uses) {
        self.work.push((origin, uses));
        while let Some((origin, uses)) = self.work.pop() {
            let node = &mut self.nodes[origin.0 as usize];
            let new = uses.without(node.uses);
            if new == Uses::default() || origin == Origin::NONE {
                continue;
            }
            node.uses = node.uses.union(new);
            self.work.push((node.earlier, new.within(node.kept)));
            let mut next = node.implied;
            while let Some(&(implied, before)) = next.and_then(|index| self.implied.get(index as usize)) {
                next = before;
                match implied {
                    Implied::Uses { of, kept } => self.work.push((of, new.within(kept))),
                    Implied::Zeroed { word, unset } if new.seen & unset != 0 => set(&mut self.zeroed, word),
                    Implied::Zeroed { .. } => {}
                }
            }
        }
    }

    /// A use of the bytes `kept` of `old`, now or later, is a use of the same bytes of `new`.
    pub(crate) fn imply(&mut self, old: Origin, new: Origin, kept: u8) {
        self.note(new, self.uses(old).within(kept));
        if old != Origin::NONE && new != Origin::NONE && kept != 0 {
            self.add_implied(old, Implied::Uses { of: new, kept });
        }
    }

    /// Past uses of the bytes `kept` of `old` are uses of the same bytes of `new`; the uses of `old` are complete.
    pub(crate) fn inherit(&mut self, old: Origin, new: Origin, kept: u8) {
        self.note(new, self.uses(old).within(kept));
    }

    /// A word must be zero on entry if any of the bytes `unset` of `origin` is seen, now or later.
    pub(crate) fn imply_zeroed(&mut self, origin: Origin, unset: u8, word: Word) {
        if self.uses(origin).seen & unset != 0 {
            set(&mut self.zeroed, word);
        }
        if unset != 0 && self.zeroed(word.function) >> word.index & 1 == 0 {
            self.add_implied(origin, Implied::Zeroed { word, unset });
        }
    }

    /// A word must be zero on entry.
    pub(crate) fn zero(&mut self, word: Word) {
        set(&mut self.zeroed, word);
    }

    /// Words of a function's frames that must be zero on entry, as bits.
    pub(crate) fn zeroed(&self, function: usize) -> u64 {
        self.zeroed[function]
    }

    fn add_implied(&mut self, origin: Origin, implied: Implied) {
        let node = &mut self.nodes[origin.0 as usize];
        let before = node.implied.replace(self.implied.len() as u32);
        self.implied.push((implied, before));
    }

    fn uses(&self, origin: Origin) -> Uses {
        let all = Uses { read: u8::MAX, seen: u8::MAX };
        self.nodes.get(origin.0 as usize).map_or(all, |node| node.uses)
    }

    /// The bytes that were read.
    pub(crate) fn bytes_read(&self, origin: Origin) -> u8 {
        self.uses(origin).read
    }
}

fn set(zeroed: &mut [u64], word: Word) {
    zeroed[word.function] |= 1 << word.index;
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Word = Word { function: 0, index: 3 };

    #[test]
    fn a_read_stops_at_bytes_that_were_written_in_between() {
        let mut reads = StackReads::new(1);
        let first = reads.checkpoint(Origin::NONE, 0);
        let second = reads.checkpoint(first, 0b0000_1111);
        reads.read(second, 0b0011_1100);
        assert_eq!((reads.bytes_read(second), reads.bytes_read(first)), (0b0011_1100, 0b0000_1100));
    }

    #[test]
    fn what_is_implied_is_read_when_its_cause_is() {
        let mut reads = StackReads::new(1);
        let (start, end) = (reads.checkpoint(Origin::NONE, 0), reads.checkpoint(Origin::NONE, 0));
        reads.imply(start, end, 0b1100);
        reads.read(start, 0b0110);
        assert_eq!(reads.bytes_read(end), 0b0100);
    }

    #[test]
    fn a_word_is_zeroed_once_its_unset_bytes_are_seen_through_the_covering_state() {
        let mut reads = StackReads::new(1);
        let first = reads.checkpoint(Origin::NONE, 0);
        let second = reads.checkpoint(first, 0b1111);
        reads.imply_zeroed(first, 0b0010, WORD);
        reads.read(second, 0b1_0001);
        assert_eq!(reads.zeroed(0), 0, "other bytes");
        reads.see(second, 0b0010);
        assert_eq!(reads.zeroed(0), 1 << 3);
        assert_eq!(reads.bytes_read(first) & 0b0010, 0, "a store is no read");
    }
}
