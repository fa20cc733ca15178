//! Checksums as terms: as `runtime` computes them.

use crate::solver::{Term, Terms};

use crate::symbolic::alu;

/// Folds a sum of 64 bits to one of 32.
fn fold32(terms: &mut Terms, sum: Term) -> Term {
    let once = add_halves(terms, sum, 32, 64);
    let twice = add_halves(terms, once, 32, 64);
    terms.extract(twice, 0, 32)
}

/// The low half and the high half of a sum, added.
fn add_halves(terms: &mut Terms, sum: Term, half: u32, width: u32) -> Term {
    let low = terms.extract(sum, 0, half);
    let high = terms.extract(sum, half, half);
    let (low, high) = (terms.resize(low, width), terms.resize(high, width));
    terms.add(low, high)
}

/// Sum of 32-bit words on top of a seed of 32 bits.
fn sum(terms: &mut Terms, bytes: &[Term], seed: Term) -> Term {
    let mut total = terms.resize(seed, 64);
    for chunk in bytes.chunks(4) {
        let mut word = chunk.to_vec();
        word.resize(4, terms.constant(8, 0));
        let word = alu::word(terms, &word);
        let word = terms.resize(word, 64);
        total = terms.add(total, word);
    }
    fold32(terms, total)
}

/// The change of a checksum when `from` is replaced by `to`, a number of 64 bits.
pub(crate) fn diff(terms: &mut Terms, from: &[Term], to: &[Term], seed: Term) -> Term {
    let seed = terms.extract(seed, 0, 32);
    let total = match (from.is_empty(), to.is_empty()) {
        (true, true) => seed,
        (true, false) => sum(terms, to, seed),
        (false, true) => {
            let not = terms.not(seed);
            let sum = sum(terms, from, not);
            terms.not(sum)
        }
        (false, false) => {
            let new = sum(terms, to, seed);
            let zero = terms.constant(32, 0);
            let old = sum(terms, from, zero);
            let old = terms.not(old);
            let (new, old) = (terms.resize(new, 64), terms.resize(old, 64));
            let both = terms.add(new, old);
            fold32(terms, both)
        }
    };
    let once = add_halves(terms, total, 16, 32);
    let twice = add_halves(terms, once, 16, 32);
    let folded = terms.extract(twice, 0, 16);
    terms.resize(folded, 64)
}

/// A sum in which a carry is added at the low end (`csum_add`, `csum16_add`).
fn add_around(terms: &mut Terms, a: Term, b: Term) -> Term {
    let sum = terms.add(a, b);
    let one = terms.constant(terms.width(sum), 1);
    let (carries, next) = (terms.ult(sum, b), terms.add(sum, one));
    terms.ite(carries, next, sum)
}

/// A checksum of 16 bits after two (`csum_replace2`) or four (`csum_replace4`) bytes of what it covers have changed.
pub(crate) fn replaced(terms: &mut Terms, sum: Term, (from, to): (Term, Term), is_wide: bool) -> Term {
    let bits = if is_wide { 32 } else { 16 };
    let (from, to) = (terms.extract(from, 0, bits), terms.extract(to, 0, bits));
    let sum = terms.resize(sum, bits);
    let (without, from) = (terms.not(sum), terms.not(from));
    let without = add_around(terms, without, from);
    let mut total = add_around(terms, without, to);
    if is_wide {
        let once = add_halves(terms, total, 16, 32);
        let twice = add_halves(terms, once, 16, 32);
        total = terms.extract(twice, 0, 16);
    }
    terms.not(total)
}
