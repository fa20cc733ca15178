//! What the code after a checkpoint turned out to need of the state there.
//!
//! A checkpoint may stand for a later state if that differs only in what does not matter: numbers that decided
//! nothing, stack bytes that nobody read. The kernel finds out what matters by walking back over the instructions
//! (`mark_chain_precision`). Here every number carries a [`Mark`] instead, the place in the last checkpoint's state
//! that it was computed from. When a number decides something (an address, a branch, a size), its mark is demanded,
//! and with it the marks that one came from, back to the start. Each mark is demanded once, so that all demands
//! together cost no more than the marks.

use std::collections::HashMap;

/// Where a number came from; [`Mark::NONE`] for constants and for what the program read from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(u32);

impl Mark {
    /// Nothing at any checkpoint.
    pub const NONE: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
struct Node {
    origins: [Mark; 2],
    demanded: bool,
}

/// The marks of numbers.
#[derive(Debug)]
pub(crate) struct Demands {
    nodes: Vec<Node>,
    work: Vec<Mark>,
    /// Marks that are demanded as soon as another one is.
    implied: HashMap<Mark, Vec<Mark>>,
}

impl Demands {
    pub(crate) fn new() -> Self {
        let none = Node { origins: [Mark::NONE; 2], demanded: true };
        Self { nodes: vec![none], work: Vec::new(), implied: HashMap::new() }
    }

    /// Bytes of all marks.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    fn add(&mut self, origins: [Mark; 2]) -> Mark {
        let mark = Mark(self.nodes.len() as u32);
        self.nodes.push(Node { origins, demanded: false });
        mark
    }

    /// A mark for a number as it stands at a new checkpoint.
    pub(crate) fn checkpoint(&mut self, origin: Mark) -> Mark {
        self.add([origin, Mark::NONE])
    }

    /// The mark of what is computed from two numbers.
    pub(crate) fn join(&mut self, a: Mark, b: Mark) -> Mark {
        if a == b || b == Mark::NONE {
            a
        } else if a == Mark::NONE {
            b
        } else {
            self.add([a, b])
        }
    }

    /// Says that a number decided something.
    pub(crate) fn demand(&mut self, mark: Mark) {
        self.work.push(mark);
        while let Some(mark) = self.work.pop() {
            let Some(node) = self.nodes.get_mut(mark.0 as usize) else { continue };
            if !node.demanded {
                node.demanded = true;
                self.work.extend(node.origins);
                self.work.extend(self.implied.remove(&mark).unwrap_or_default());
            }
        }
    }

    /// Says that `new` is demanded if `old` is, now or later.
    pub(crate) fn imply(&mut self, old: Mark, new: Mark) {
        if self.is_demanded(old) {
            self.demand(new);
        } else if new != Mark::NONE {
            self.implied.entry(old).or_default().push(new);
        }
    }

    /// Whether anything computed from the mark decided something.
    pub(crate) fn is_demanded(&self, mark: Mark) -> bool {
        self.nodes.get(mark.0 as usize).is_none_or(|node| node.demanded)
    }
}

/// Where the bytes of a stack slot came from; [`Origin::NONE`] when all were written since the last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin(u32);

impl Origin {
    /// No checkpoint.
    pub const NONE: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
struct SlotNode {
    earlier: Origin,
    /// Bytes that were the earlier checkpoint's, as bits.
    kept: u8,
    /// Bytes that were read, as bits.
    read: u8,
}

/// Which bytes of stack slots were read.
#[derive(Debug)]
pub(crate) struct StackReads {
    nodes: Vec<SlotNode>,
    work: Vec<(Origin, u8)>,
    /// Slots whose bytes, given as bits, are read as soon as those of another one are.
    implied: HashMap<Origin, Vec<(Origin, u8)>>,
}

impl StackReads {
    pub(crate) fn new() -> Self {
        let none = SlotNode { earlier: Origin::NONE, kept: 0, read: 0 };
        Self { nodes: vec![none], work: Vec::new(), implied: HashMap::new() }
    }

    /// An origin for a slot as it stands at a new checkpoint, where `kept` of its bytes are still `earlier`'s.
    pub(crate) fn checkpoint(&mut self, earlier: Origin, kept: u8) -> Origin {
        let origin = Origin(self.nodes.len() as u32);
        self.nodes.push(SlotNode { earlier, kept, read: 0 });
        origin
    }

    /// Bytes of all origins.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<SlotNode>()
    }

    /// Says that bytes were read.
    pub(crate) fn read(&mut self, origin: Origin, bytes: u8) {
        self.work.push((origin, bytes));
        while let Some((origin, bytes)) = self.work.pop() {
            let Some(node) = self.nodes.get_mut(origin.0 as usize) else { continue };
            let new = bytes & !node.read;
            if new == 0 || origin == Origin::NONE {
                continue;
            }
            node.read |= new;
            self.work.push((node.earlier, new & node.kept));
            if let Some(implied) = self.implied.get(&origin) {
                self.work.extend(implied.iter().map(|&(other, kept)| (other, new & kept)));
            }
        }
    }

    /// Says that those of the bytes `kept` of `new` are read that are read of `old`, now or later.
    pub(crate) fn imply(&mut self, old: Origin, new: Origin, kept: u8) {
        self.read(new, self.bytes_read(old) & kept);
        if old != Origin::NONE && new != Origin::NONE {
            self.implied.entry(old).or_default().push((new, kept));
        }
    }

    /// The bytes that were read.
    pub(crate) fn bytes_read(&self, origin: Origin) -> u8 {
        self.nodes.get(origin.0 as usize).map_or(u8::MAX, |node| node.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_reaches_back_to_everything_it_was_computed_from_and_nothing_else() {
        let mut demands = Demands::new();
        let (a, b, c) =
            (demands.checkpoint(Mark::NONE), demands.checkpoint(Mark::NONE), demands.checkpoint(Mark::NONE));
        let sum = demands.join(a, b);
        let later = demands.checkpoint(sum);
        let sibling = demands.checkpoint(sum);
        demands.demand(later);
        assert_eq!([a, b, c, sibling].map(|m| demands.is_demanded(m)), [true, true, false, false]);
    }

    #[test]
    fn what_a_loop_implies_is_demanded_when_its_start_is() {
        let (mut demands, mut reads) = (Demands::new(), StackReads::new());
        let (start, end) = (demands.checkpoint(Mark::NONE), demands.checkpoint(Mark::NONE));
        demands.imply(start, end);
        assert!(!demands.is_demanded(end));
        demands.demand(start);
        assert!(demands.is_demanded(end));
        let (start, end) = (reads.checkpoint(Origin::NONE, 0), reads.checkpoint(Origin::NONE, 0));
        reads.imply(start, end, 0b1100);
        reads.read(start, 0b0110);
        assert_eq!(reads.bytes_read(end), 0b0100);
    }

    #[test]
    fn a_read_stops_at_bytes_that_were_written_in_between() {
        let mut reads = StackReads::new();
        let first = reads.checkpoint(Origin::NONE, 0);
        let second = reads.checkpoint(first, 0b0000_1111);
        reads.read(second, 0b0011_1100);
        assert_eq!((reads.bytes_read(second), reads.bytes_read(first)), (0b0011_1100, 0b0000_1100));
    }
}
