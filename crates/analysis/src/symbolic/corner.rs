//! Models at corners: arithmetic goes wrong where a number is zero or has all bits set, as a carry does that is lost. With one such number
//! a question is often easy that is hard to answer of all numbers.

use std::collections::BTreeMap;

use crate::solver::{Answer, Model, Term};

use crate::symbolic::explorer::Explorer;
use crate::symbolic::source::Source;

/// Most numbers that are tried.
const MOST: usize = 64;

impl Explorer<'_> {
    /// A model in which a condition holds with those of a path, and in which two bytes beside each other of the packet, or of a value of a map, are
    /// zero or have all bits set; `None` if none is soon found.
    pub(crate) fn at_a_corner(&mut self, path: &[Term], model: &Model, condition: Term) -> Option<Model> {
        for word in self.words(path, condition).into_iter().take(MOST) {
            for corner in [u64::from(u16::MAX), 0] {
                if self.limit().is_some() {
                    return None;
                }
                let corner = self.terms.constant(16, corner);
                let is_there = self.terms.eq(word, corner);
                let both = self.terms.and(condition, is_there);
                if let Answer::Sat(model) = self.try_to_ask(path, model, both) {
                    return Some(model);
                }
            }
        }
        None
    }

    /// The numbers of 16 bits that a condition depends on, and those of a path; those of the condition come first.
    fn words(&mut self, path: &[Term], condition: Term) -> Vec<Term> {
        let mut words = self.words_of(&[condition]);
        let others = self.words_of(path);
        words.extend(others.into_iter().filter(|word| !words.contains(word)).collect::<Vec<_>>());
        words
    }

    fn words_of(&mut self, conditions: &[Term]) -> Vec<Term> {
        let bytes: BTreeMap<Source, Term> = self.variables(conditions).into_iter().collect();
        let second = |source: &Source| match *source {
            Source::Packet(offset) if offset % 2 == 0 => Some(Source::Packet(offset + 1)),
            Source::Value { map, element, byte } if byte % 2 == 0 => {
                Some(Source::Value { map, element, byte: byte + 1 })
            }
            _ => None,
        };
        let pairs = bytes.iter().filter_map(|(source, byte)| Some((*byte, *bytes.get(&second(source)?)?)));
        let pairs: Vec<_> = pairs.collect();
        pairs.into_iter().map(|(first, second)| self.terms.concat(first, second)).collect()
    }
}
