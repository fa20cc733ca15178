//! The simplifier and the blaster against the definitions of the operations.

use paceline_analysis::solver::{Answer, Batsat, Model, Solver, Term, Terms, Unknown};

const WIDTHS: [u32; 6] = [1, 3, 8, 16, 32, 64];

fn ones(width: u32) -> u64 {
    if width == 64 { u64::MAX } else { (1 << width) - 1 }
}

/// A term beside the number that it has by definition, under one assignment.
#[derive(Clone, Copy)]
struct Known {
    term: Term,
    value: u64,
    width: u32,
}

/// Random terms with their numbers, computed beside the pool and never by it.
struct Maker {
    random: fastrand::Rng,
    terms: Terms,
    model: Model,
    known: Vec<Known>,
}

impl Maker {
    fn new(seed: u64, vars: usize, widths: &[u32]) -> Self {
        let mut maker = Self {
            random: fastrand::Rng::with_seed(seed),
            terms: Terms::new(),
            model: Model::default(),
            known: Vec::new(),
        };
        for _ in 0..vars {
            let width = *maker.random.choice(widths).unwrap();
            let term = maker.terms.var(width);
            let value = maker.number(width);
            let var = *maker.terms.support(term).first().unwrap();
            maker.model.set(var, value);
            maker.known.push(Known { term, value, width });
        }
        maker
    }

    /// Numbers that are special more often than chance would have it.
    fn number(&mut self, width: u32) -> u64 {
        let value = match self.random.u8(0..6) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << self.random.u32(0..width),
            3 => self.random.u64(0..8),
            _ => self.random.u64(..),
        };
        value & ones(width)
    }

    fn pick(&mut self) -> Known {
        let index = self.random.usize(0..self.known.len());
        self.known[index]
    }

    /// A term of a width: a constant, or one that is known, cut or extended.
    fn of_width(&mut self, width: u32) -> Known {
        if self.random.u8(0..5) == 0 {
            let value = self.number(width);
            return Known { term: self.terms.constant(width, value), value, width };
        }
        let from = self.pick();
        if from.width < width && self.random.bool() {
            let term = self.terms.sign_extend(from.term, width);
            let shift = 64 - from.width;
            let value = ((from.value << shift).cast_signed() >> shift).cast_unsigned() & ones(width);
            return Known { term, value, width };
        }
        Known { term: self.terms.resize(from.term, width), value: from.value & ones(width), width }
    }

    fn step(&mut self) {
        let a = self.pick();
        let b = self.of_width(a.width);
        let w = a.width;
        let signed = |value: u64| (value << (64 - w)).cast_signed() >> (64 - w);
        let (x, y) = (a.value, b.value);
        let t = &mut self.terms;
        let shifted = |by: fn(u64, u32) -> u64, far: u64| match u32::try_from(y) {
            Ok(count) if count < w => by(x, count),
            _ => far,
        };
        let (term, value, width) = match self.random.u8(0..29) {
            0 => (t.add(a.term, b.term), x.wrapping_add(y), w),
            1 => (t.sub(a.term, b.term), x.wrapping_sub(y), w),
            2 => (t.mul(a.term, b.term), x.wrapping_mul(y), w),
            3 => (t.udiv(a.term, b.term), x.checked_div(y).unwrap_or(u64::MAX), w),
            4 => (t.urem(a.term, b.term), x.checked_rem(y).unwrap_or(x), w),
            5 | 6 => (t.and(a.term, b.term), x & y, w),
            7 | 8 => (t.or(a.term, b.term), x | y, w),
            9 => (t.xor(a.term, b.term), x ^ y, w),
            10 => (t.not(a.term), !x, w),
            11 => (t.neg(a.term), x.wrapping_neg(), w),
            12 => (t.shl(a.term, b.term), shifted(|x, n| x << n, 0), w),
            13 => (t.lshr(a.term, b.term), shifted(|x, n| x >> n, 0), w),
            14 => {
                let count = y.min(63) as u32;
                (t.ashr(a.term, b.term), (signed(x) >> count).cast_unsigned(), w)
            }
            15 | 16 => {
                let count = self.random.u64(0..u64::from(w) + 1);
                let by = t.constant(w, count);
                let count = count & ones(w);
                (t.shl(a.term, by), if count < u64::from(w) { x << count } else { 0 }, w)
            }
            17 => {
                let count = self.random.u64(0..u64::from(w));
                let by = t.constant(w, count);
                let count = count & ones(w);
                (t.lshr(a.term, by), x >> count, w)
            }
            18 => (t.eq(a.term, b.term), u64::from(x == y), 1),
            19 => (t.ult(a.term, b.term), u64::from(x < y), 1),
            20 => (t.ule(a.term, b.term), u64::from(x <= y), 1),
            21 => (t.slt(a.term, b.term), u64::from(signed(x) < signed(y)), 1),
            22 => (t.sle(a.term, b.term), u64::from(signed(x) <= signed(y)), 1),
            23 => {
                let low = self.random.u32(0..w);
                let width = self.random.u32(1..=w - low);
                (t.extract(a.term, low, width), x >> low, width)
            }
            24 if w.is_multiple_of(8) => (t.swap_bytes(a.term), x.swap_bytes() >> (64 - w), w),
            25 => {
                let low = self.pick();
                if w + low.width > 64 {
                    return;
                }
                (self.terms.concat(a.term, low.term), x << low.width | low.value, w + low.width)
            }
            26 => {
                let (quotient, remainder) = match (signed(x), signed(y)) {
                    (x, 0) => (if x < 0 { 1 } else { -1 }, x),
                    (x, y) => (x.wrapping_div(y), x.wrapping_rem(y)),
                };
                match self.random.bool() {
                    true => (t.sdiv(a.term, b.term), quotient.cast_unsigned(), w),
                    false => (t.srem(a.term, b.term), remainder.cast_unsigned(), w),
                }
            }
            27 => {
                // As compilers write remainders, also where a division by zero gives zero.
                let (quotient, zero) = (t.udiv(a.term, b.term), t.constant(w, 0));
                let is_zero = t.eq(b.term, zero);
                let quotient = if x & 1 == 0 { t.ite(is_zero, zero, quotient) } else { quotient };
                let product = t.mul(quotient, b.term);
                (t.sub(a.term, product), x.checked_rem(y).unwrap_or(x), w)
            }
            _ => {
                let condition = self.of_width(1);
                let term = self.terms.ite(condition.term, a.term, b.term);
                (term, if condition.value == 1 { x } else { y }, w)
            }
        };
        self.known.push(Known { term, value: value & ones(width), width });
    }
}

#[test]
fn simplified_terms_have_the_numbers_of_their_definitions() {
    for seed in 0..4_000 {
        let mut maker = Maker::new(seed, 4, &WIDTHS);
        for _ in 0..40 {
            maker.step();
            let last = *maker.known.last().unwrap();
            assert_eq!(maker.terms.width(last.term), last.width, "seed {seed}");
            let value = maker.terms.evaluate(&maker.model, last.term);
            assert_eq!(value, last.value, "seed {seed}: {:?}", maker.terms.node(last.term));
            let (min, max) = maker.terms.range(last.term);
            assert!((min..=max).contains(&value), "seed {seed}: {value} is not in {min}..={max}");
        }
    }
}

#[test]
fn models_hold_and_refutations_do_too() {
    let mut answers = [0_usize; 2];
    for seed in 0..700 {
        let mut maker = Maker::new(seed, 3, &[1, 3, 8, 16, 32, 64]);
        for _ in 0..15 {
            maker.step();
        }
        let of = maker.pick();
        let wanted = if maker.random.bool() { of.value } else { maker.number(of.width) };
        let constant = maker.terms.constant(of.width, wanted);
        let condition = maker.terms.eq(of.term, constant);
        let mut solver = Solver::<Batsat>::new(Some(2_000), None);
        match solver.check(&mut maker.terms, &[condition]) {
            Answer::Sat(model) => {
                answers[0] += 1;
                assert_eq!(maker.terms.evaluate(&model, of.term), wanted, "seed {seed}");
            }
            Answer::Unsat => {
                answers[1] += 1;
                assert_ne!(of.value, wanted, "seed {seed}: there is a model");
            }
            Answer::Unknown(why) => assert_eq!(why, Unknown::Conflicts, "seed {seed}"),
        }
    }
    assert!(answers.iter().all(|count| *count > 50), "{answers:?}");
}

/// All assignments of few bits are tried.
#[test]
fn few_bits_are_answered_as_by_trying_all() {
    let mut answers = [0_usize; 2];
    for seed in 0..1_500 {
        let mut maker = Maker::new(seed, 3, &[1, 2, 3, 4]);
        for _ in 0..12 {
            maker.step();
        }
        let conditions: Vec<_> = (0..3)
            .map(|_| {
                let of = maker.pick();
                let value = maker.number(of.width);
                let constant = maker.terms.constant(of.width, value);
                let equal = maker.terms.eq(of.term, constant);
                if maker.random.bool() { equal } else { maker.terms.ule(constant, of.term) }
            })
            .collect();
        let vars: Vec<_> = maker.known[..3].iter().map(|known| (known.term, known.width)).collect();
        let bits: u32 = vars.iter().map(|(_, width)| width).sum();
        let possible = (0..1_u64 << bits).any(|assignment| {
            let (mut model, mut rest) = (Model::default(), assignment);
            for &(term, width) in &vars {
                model.set(maker.terms.support(term)[0], rest & ones(width));
                rest >>= width;
            }
            conditions.iter().all(|condition| maker.terms.evaluate(&model, *condition) == 1)
        });
        let mut solver = Solver::<Batsat>::new(None, None);
        let answer = solver.check(&mut maker.terms, &conditions);
        assert_eq!(matches!(answer, Answer::Sat(_)), possible, "seed {seed}: {answer:?}");
        answers[usize::from(possible)] += 1;
    }
    assert!(answers.iter().all(|count| *count > 100), "{answers:?}");
}

#[test]
fn one_solver_answers_many_questions() {
    let mut terms = Terms::new();
    let (a, b) = (terms.var(16), terms.var(16));
    let mut solver = Solver::<Batsat>::new(None, None);
    let product = terms.mul(a, b);
    let mut others = Vec::new();
    let mut model = Model::default();
    for (wanted, possible) in [(15, true), (16, false), (15, true)] {
        let wanted = terms.constant(16, wanted);
        let condition = terms.eq(product, wanted);
        match solver.extend(&mut terms, &others, &model, condition) {
            Answer::Sat(next) => {
                assert!(possible);
                model = next;
                others.push(condition);
            }
            answer => assert_eq!((answer, possible), (Answer::Unsat, false)),
        }
    }
    assert_eq!(terms.evaluate(&model, product), 15);
}

#[test]
fn wishes_are_kept_in_their_order() {
    let mut terms = Terms::new();
    let (a, b) = (terms.var(8), terms.var(8));
    let (four, nine, ten) = (terms.constant(8, 4), terms.constant(8, 9), terms.constant(8, 10));
    let sum = terms.add(a, b);
    let condition = terms.eq(sum, ten);
    let mut solver = Solver::<Batsat>::new(None, None);
    let Answer::Sat(model) = solver.check(&mut terms, &[condition]) else { panic!("10 is a sum") };
    let wishes = [terms.eq(a, four), terms.eq(b, nine), terms.ult(b, nine)];
    let best = solver.prefer(&mut terms, &[condition], &model, &wishes);
    assert_eq!((terms.evaluate(&best, a), terms.evaluate(&best, b)), (4, 6));
}

/// As many operations as long programs have, in a straight line.
const CHAIN: u64 = 100_000;

/// Sums and exclusive ors by turns, of two variables and constants, with the number of the last one.
fn chain(terms: &mut Terms, model: &mut Model) -> (Term, u64) {
    let (a, b) = (terms.var(64), terms.var(64));
    let numbers = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210_u64];
    for (var, number) in [a, b].into_iter().zip(numbers) {
        model.set(terms.support(var)[0], number);
    }
    let (mut term, mut value) = (a, numbers[0]);
    for index in 0..CHAIN {
        let constant = terms.constant(64, index);
        let other = terms.xor(b, constant);
        let number = numbers[1] ^ index;
        (term, value) = match index % 2 {
            0 => (terms.add(term, other), value.wrapping_add(number)),
            _ => (terms.xor(term, other), value ^ number),
        };
    }
    (term, value)
}

#[test]
fn long_chains_need_no_deep_stack() {
    let (mut terms, mut model) = (Terms::new(), Model::default());
    let (term, value) = chain(&mut terms, &mut model);
    let low = terms.extract(term, 3, 9);
    assert_eq!(terms.evaluate(&model, term), value);
    assert_eq!(terms.evaluate(&model, low), value >> 3 & 0x1ff);
    let wanted = terms.constant(9, 0x155);
    let condition = terms.eq(low, wanted);
    let low_byte = low_of(&mut terms, term);
    let difference = terms.sub(term, low_byte);
    let swapped = terms.swap_bytes(difference);
    assert_eq!(terms.evaluate(&model, swapped), (value & !0xff).swap_bytes());
    let mut solver = Solver::<Batsat>::new(Some(10), Some(std::time::Duration::from_millis(300)));
    // It ends.
    let start = std::time::Instant::now();
    let _ = solver.check(&mut terms, &[condition]);
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
}

fn low_of(terms: &mut Terms, term: Term) -> Term {
    let low = terms.extract(term, 0, 8);
    terms.resize(low, 64)
}

/// Choices between constants, each under the one before.
#[test]
fn long_choices_need_no_deep_stack() {
    let mut terms = Terms::new();
    let mut of = terms.var(32);
    for index in 0..CHAIN {
        let bit = terms.var(1);
        let constant = terms.constant(32, index | 1 << 20);
        of = terms.ite(bit, constant, of);
    }
    let none = terms.constant(32, 7);
    let equal = terms.eq(of, none);
    let not = terms.not(of);
    let part = terms.extract(not, 5, 11);
    let mut model = Model::default();
    model.set(terms.support(part)[0], 7);
    assert_eq!(terms.evaluate(&model, equal), 1);
    assert_eq!(terms.evaluate(&model, part), !7 >> 5 & 0x7ff);
}

/// Rounds of a hash: each number is used several times, shifted and not, so that there are more ways to a bit than can be counted.
#[test]
fn parts_of_shared_terms_are_made_once() {
    let mut terms = Terms::new();
    let var = terms.var(32);
    let (mut term, mut value) = (var, 0x1234_5678_u32);
    let mut model = Model::default();
    model.set(terms.support(var)[0], value.into());
    for _ in 0..200 {
        for (left, by) in [(true, 13_u32), (false, 17), (true, 5)] {
            let count = terms.constant(32, by.into());
            let shifted = if left { terms.shl(term, count) } else { terms.lshr(term, count) };
            term = terms.xor(term, shifted);
            value ^= if left { value << by } else { value >> by };
        }
        let sum = terms.add(term, var);
        let ored = terms.or(sum, term);
        term = terms.and(ored, sum);
        let sum = value.wrapping_add(0x1234_5678);
        value = (sum | value) & sum;
    }
    let part = terms.extract(term, 9, 7);
    assert_eq!(terms.evaluate(&model, part), u64::from(value) >> 9 & 0x7f);
    assert!(terms.len() < 400_000, "{}", terms.len());
}

#[test]
fn a_deadline_ends_the_translation_too() {
    let (mut terms, mut model) = (Terms::new(), Model::default());
    let (mut term, _) = chain(&mut terms, &mut model);
    for _ in 0..20_000 {
        term = terms.mul(term, term);
    }
    // No square, which the numbers alone do not tell.
    let three = terms.constant(64, 3);
    let conditions = [terms.eq(term, three)];
    let mut solver = Solver::<Batsat>::new(None, None);
    let start = std::time::Instant::now();
    solver.set_deadline(start.checked_add(std::time::Duration::from_millis(200)));
    assert_eq!(solver.check(&mut terms, &conditions), Answer::Unknown(Unknown::Time));
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn limits_end_a_search() {
    let mut terms = Terms::new();
    let (a, b) = (terms.var(31), terms.var(31));
    let (wide_a, wide_b) = (terms.resize(a, 62), terms.resize(b, 62));
    let product = terms.mul(wide_a, wide_b);
    // The product of two primes of 31 bits.
    let wanted = terms.constant(62, 2_147_483_647 * 2_147_483_629);
    let one = terms.constant(31, 1);
    let conditions = [terms.eq(product, wanted), terms.ult(one, a), terms.ult(one, b), terms.ult(a, b)];
    let mut solver = Solver::<Batsat>::new(Some(50), None);
    assert_eq!(solver.check(&mut terms, &conditions), Answer::Unknown(Unknown::Conflicts));
    let mut solver = Solver::<Batsat>::new(None, Some(std::time::Duration::from_nanos(1)));
    assert_eq!(solver.check(&mut terms, &conditions), Answer::Unknown(Unknown::Time));
}
