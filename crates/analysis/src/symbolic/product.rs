//! Products with factors of many bits, such as those of hashes, where two programs are compared. Each is a variable, which says less than is true:
//! that it is the product is said only where a model has it otherwise ([`crate::symbolic::settle`]). So a proof holds, and an input is one. The same factors
//! are the same term, and so the same variable.

use crate::solver::{Node, Term};

use crate::symbolic::explorer::Explorer;
use crate::symbolic::source::Source;

/// Bits that are set in a factor whose products have few clauses.
const FEW: u32 = 4;

impl Explorer<'_> {
    /// A number of 64 bits, with a variable in the place of the product that it is, or that its low bits are.
    pub(crate) fn product(&mut self, number: Term) -> Term {
        if self.twin.is_none() {
            return number;
        }
        let low = match self.terms.node(number) {
            Node::Concat(high, low) if self.terms.value(high) == Some(0) => low,
            _ => number,
        };
        let Node::Mul(_, factor) = self.terms.node(low) else { return number };
        // Constants are on the right.
        if self.terms.value(factor).is_none_or(|factor| factor.count_ones() <= FEW) {
            return number;
        }
        self.has_products = true;
        let source = Source::Product(low, self.terms.width(low));
        let product = self.sources.term(&mut self.terms, source);
        self.terms.resize(product, 64)
    }
}
