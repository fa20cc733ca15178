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
    /// How many of those there were.
    implications: usize,
}

impl Demands {
    pub(crate) fn new() -> Self {
        let none = Node { origins: [Mark::NONE; 2], demanded: true };
        Self { nodes: vec![none], work: Vec::new(), implied: HashMap::new(), implications: 0 }
    }

    /// Bytes of all marks, and of what they imply.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.implications * size_of::<Mark>()
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
            self.implications += 1;
        }
    }

    /// Whether anything computed from the mark decided something.
    pub(crate) fn is_demanded(&self, mark: Mark) -> bool {
        self.nodes.get(mark.0 as usize).is_none_or(|node| node.demanded)
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
    fn what_is_implied_is_demanded_when_its_cause_is() {
        let mut demands = Demands::new();
        let (start, end) = (demands.checkpoint(Mark::NONE), demands.checkpoint(Mark::NONE));
        demands.imply(start, end);
        assert!(!demands.is_demanded(end));
        demands.demand(start);
        assert!(demands.is_demanded(end));
    }
}
