//! Precision: the numbers of a checkpoint's state that the code after it depends on.
//!
//! A checkpoint covers a later state if the two differ only in imprecise numbers and in stack bytes that are never read. The
//! kernel finds precise numbers by walking back over the instructions (`mark_chain_precision`). Here every number carries a
//! [`Mark`]: its origin in the last checkpoint's state. A number that determines an address, a branch or a size makes its mark
//! precise, and with it the marks of its origins, back to the start. Each mark becomes precise once, so that the total cost is
//! linear in the number of marks.

use std::collections::HashMap;

use super::state::{Mark, Scalar, Value};

#[derive(Clone, Copy, Debug)]
struct Node {
    origins: [Mark; 2],
    precise: bool,
}

/// The marks of numbers.
#[derive(Debug)]
pub(crate) struct Precision {
    nodes: Vec<Node>,
    work: Vec<Mark>,
    /// Marks that become precise together with the key.
    implied: HashMap<Mark, Vec<Mark>>,
    /// Number of entries of `implied` so far.
    implications: usize,
}

impl Precision {
    pub(crate) fn new() -> Self {
        let none = Node { origins: [Mark::NONE; 2], precise: true };
        Self { nodes: vec![none], work: Vec::new(), implied: HashMap::new(), implications: 0 }
    }

    /// Bytes of all marks and implications.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.implications * size_of::<Mark>()
    }

    fn add(&mut self, origins: [Mark; 2]) -> Mark {
        let mark = Mark(self.nodes.len() as u32);
        self.nodes.push(Node { origins, precise: false });
        mark
    }

    /// The mark of a number at a new checkpoint.
    pub(crate) fn checkpoint(&mut self, origin: Mark) -> Mark {
        self.add([origin, Mark::NONE])
    }

    /// The mark of a number that is computed from two others.
    pub(crate) fn join(&mut self, a: Mark, b: Mark) -> Mark {
        if a == b || b == Mark::NONE {
            a
        } else if a == Mark::NONE {
            b
        } else {
            self.add([a, b])
        }
    }

    /// Makes a mark precise, with all its origins.
    pub(crate) fn mark_precise(&mut self, mark: Mark) {
        self.work.push(mark);
        while let Some(mark) = self.work.pop() {
            let Some(node) = self.nodes.get_mut(mark.0 as usize) else { continue };
            if !node.precise {
                node.precise = true;
                self.work.extend(node.origins);
                self.work.extend(self.implied.remove(&mark).unwrap_or_default());
            }
        }
    }

    /// Marks a value as precise, if it is a number: states that differ in it do not cover each other.
    pub(crate) fn mark_value(&mut self, value: &Value) {
        if let Value::Scalar(scalar) = value {
            self.mark_precise(scalar.mark);
        }
    }

    /// Whether a number became precise since the last checkpoint; a number without an origin has no mark.
    pub(crate) fn is_decided(&self, scalar: &Scalar) -> bool {
        scalar.mark != Mark::NONE && self.is_precise(scalar.mark)
    }

    /// `new` becomes precise as soon as `old` does.
    pub(crate) fn imply(&mut self, old: Mark, new: Mark) {
        if self.is_precise(old) {
            self.mark_precise(new);
        } else if new != Mark::NONE {
            self.implied.entry(old).or_default().push(new);
            self.implications += 1;
        }
    }

    /// Whether a number with this origin is precise.
    pub(crate) fn is_precise(&self, mark: Mark) -> bool {
        self.nodes.get(mark.0 as usize).is_none_or(|node| node.precise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_reaches_back_to_everything_it_was_computed_from_and_nothing_else() {
        let mut precision = Precision::new();
        let (a, b, c) = (
            precision.checkpoint(Mark::NONE),
            precision.checkpoint(Mark::NONE),
            precision.checkpoint(Mark::NONE),
        );
        let sum = precision.join(a, b);
        let later = precision.checkpoint(sum);
        let sibling = precision.checkpoint(sum);
        precision.mark_precise(later);
        assert_eq!([a, b, c, sibling].map(|m| precision.is_precise(m)), [true, true, false, false]);
    }

    #[test]
    fn an_implied_mark_is_precise_when_its_cause_is() {
        let mut precision = Precision::new();
        let (start, end) = (precision.checkpoint(Mark::NONE), precision.checkpoint(Mark::NONE));
        precision.imply(start, end);
        assert!(!precision.is_precise(end));
        precision.mark_precise(start);
        assert!(precision.is_precise(end));
    }
}
