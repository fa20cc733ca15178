//! Exhaustive at 4 and 6 bits, random at 64.

use paceline_isa::{AluOp, Condition, Size, SwapOrder, Width, eval};

use super::width::{mask, signed, signed_min};
use super::{Bounds, Number, Scalar, Tnum};

/// `a op b` on numbers of `bits` bits; `None` where the width leaves it open.
fn alu(op: AluOp, a: u64, b: u64, bits: u32) -> Option<u64> {
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let shift = || (b < u64::from(bits)).then_some(b as u32);
    let result = match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div => a.checked_div(b).unwrap_or(0),
        AluOp::Mod => a.checked_rem(b).unwrap_or(a),
        AluOp::SDiv => sa.checked_div(sb).unwrap_or(0) as u64,
        AluOp::SMod => sa.checked_rem(sb).unwrap_or(sa) as u64,
        AluOp::Or => a | b,
        AluOp::And => a & b,
        AluOp::Xor => a ^ b,
        AluOp::Lsh => a << shift()?,
        AluOp::Rsh => a >> shift()?,
        AluOp::Arsh => (sa >> shift()?) as u64,
        AluOp::Mov => b,
    };
    Some(result & mask(bits))
}

fn compare(condition: Condition, a: u64, b: u64, bits: u32) -> bool {
    let extend = |x| signed(x, bits) as u64;
    match condition {
        Condition::SGt | Condition::SGe | Condition::SLt | Condition::SLe => {
            eval::compare(Width::W64, condition, extend(a), extend(b))
        }
        _ => eval::compare(Width::W64, condition, a, b),
    }
}

/// Every abstract value that some unsigned range, signed range or known bits give, alone or met in pairs.
fn values<const BITS: u32>(stride: usize) -> Vec<Scalar<BITS>> {
    let full = Scalar::<BITS>::UNKNOWN;
    let mut all = Vec::new();
    let max = mask(BITS);
    for from in 0..=max {
        for to in from..=max {
            let unsigned = Bounds { umin: from, umax: to, ..full.whole };
            all.extend(Scalar::from_parts(full.bits, unsigned, full.low));
            let (from, to) = (from as i64 + signed_min(BITS), to as i64 + signed_min(BITS));
            let signed = Bounds { smin: from, smax: to, ..full.whole };
            all.extend(Scalar::from_parts(full.bits, signed, full.low));
        }
    }
    for unknown in 0..=max {
        for value in (0..=max).filter(|value| value & unknown == 0) {
            all.extend(Scalar::from_parts(Tnum::new(value, unknown), full.whole, full.low));
        }
    }
    let half = mask(Scalar::<BITS>::HALF);
    for from in 0..=half {
        for to in from..=half {
            let low = Bounds { umin: from, umax: to, ..full.low };
            all.extend(Scalar::from_parts(full.bits, full.whole, low));
        }
    }
    let singles = all.clone();
    let mut random = fastrand::Rng::with_seed(7);
    for a in singles.iter().step_by(stride) {
        all.extend(a.meet(&singles[random.usize(..singles.len())]));
    }
    all.sort_by_key(|s| {
        (s.whole.umin, s.whole.umax, s.whole.smin, s.bits.value(), s.bits.unknown(), s.low.umin)
    });
    all.dedup();
    all
}

fn members<const BITS: u32>(scalar: &Scalar<BITS>) -> Vec<u64> {
    (0..=mask(BITS)).filter(|&x| scalar.contains(x)).collect()
}

#[test]
fn a_value_is_never_empty_and_each_of_its_parts_is_as_tight_as_its_members_allow() {
    let all = values::<6>(1);
    let mut loose = 0;
    for scalar in &all {
        let members = members(scalar);
        assert!(!members.is_empty(), "{scalar}");
        let (min, max) = (members[0], members[members.len() - 1]);
        loose += usize::from((scalar.umin(), scalar.umax()) != (min, max));
    }
    // Bounds against known bits in the middle of a number are not worked out to the end, as in the kernel.
    assert!(loose * 10 < all.len() * 3, "{loose} of {}", all.len());
}

#[test]
fn numbers_of_some_bits_are_what_their_bounds_make_them() {
    let all = |bits| Number::unsigned(bits) == Number::between(0, mask(bits));
    assert!((1..=64).all(all));
    assert!((1..=6).all(|bits| Scalar::<6>::unsigned(bits) == Scalar::<6>::between(0, mask(bits))));
}

#[test]
fn meeting_loses_no_common_member() {
    let all = values::<4>(1);
    for a in &all {
        for b in &all {
            let met = a.meet(b);
            for x in 0..16 {
                if a.contains(x) && b.contains(x) {
                    assert!(met.is_some_and(|met| met.contains(x)), "{a} and {b}: {x}");
                }
            }
        }
    }
}

#[test]
fn joining_includes_both_and_nothing_more_of_a_number_with_itself() {
    let all = values::<4>(1);
    for a in &all {
        assert_eq!(a.join(a), *a);
        for b in &all {
            let joined = a.join(b);
            assert!(joined.includes(a) && joined.includes(b), "{a} or {b}: {joined}");
            assert!((0..16).all(|x| !a.contains(x) && !b.contains(x) || joined.contains(x)), "{a} or {b}");
        }
    }
}

fn check_alu<const BITS: u32>(all: &[Scalar<BITS>], sampled: &[Scalar<BITS>]) {
    let with_members: Vec<_> = all.iter().map(|s| (*s, members(s))).collect();
    let others: Vec<_> = sampled.iter().map(|s| (*s, members(s))).collect();
    let half = Scalar::<BITS>::HALF;
    for op in AluOp::ALL {
        for (a, a_members) in &with_members {
            for (b, b_members) in &others {
                let (whole, low) = (a.alu(Width::W64, op, b), a.alu(Width::W32, op, b));
                for &x in a_members {
                    for &y in b_members {
                        if let Some(z) = alu(op, x, y, BITS) {
                            assert!(whole.contains(z), "{a} {op:?} {b} = {whole}, but {x} and {y} give {z}");
                        }
                        if let Some(z) = alu(op, x & mask(half), y & mask(half), half) {
                            assert!(low.contains(z), "low {a} {op:?} {b} = {low}, but {x} and {y} give {z}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn arithmetic_covers_every_result_at_4_bits() {
    let all = values::<4>(1);
    check_alu(&all, &all);
}

#[test]
fn arithmetic_covers_every_result_at_6_bits() {
    let all = values::<6>(4);
    let some = |stride, start| all.iter().skip(start).step_by(stride).copied().collect::<Vec<_>>();
    check_alu(&some(23, 1), &some(29, 2));
}

fn check_refine<const BITS: u32>(all: &[Scalar<BITS>], others: &[Scalar<BITS>]) {
    let half = Scalar::<BITS>::HALF;
    let with_members: Vec<_> = all.iter().map(|s| (*s, members(s))).collect();
    let others: Vec<_> = others.iter().map(|s| (*s, members(s))).collect();
    for (a, a_members) in &with_members {
        for (b, b_members) in &others {
            for condition in Condition::ALL {
                for width in [Width::W64, Width::W32] {
                    let bits = if width == Width::W64 { BITS } else { half };
                    let outcomes = [false, true].map(|holds| Scalar::refine(a, b, width, condition, holds));
                    for &x in a_members {
                        for &y in b_members {
                            let holds = compare(condition, x & mask(bits), y & mask(bits), bits);
                            let kept = outcomes[usize::from(holds)];
                            let covers = kept.is_some_and(|(a, b)| a.contains(x) && b.contains(y));
                            assert!(
                                covers,
                                "{a} {condition:?} {b} {width:?} {holds}: {kept:?} lacks {x}, {y}"
                            );
                        }
                    }
                    for (a2, b2) in outcomes.iter().flatten() {
                        assert!(a.includes(a2) && b.includes(b2), "{a} {condition:?} {b}: {a2} {b2}");
                    }
                }
            }
        }
    }
}

#[test]
fn branches_keep_every_pair_that_takes_them_at_4_bits() {
    let all = values::<4>(1);
    check_refine(&all, &all);
}

#[test]
fn branches_keep_every_pair_that_takes_them_at_6_bits() {
    let all = values::<6>(4);
    let some = |stride, start| all.iter().skip(start).step_by(stride).copied().collect::<Vec<_>>();
    check_refine(&some(23, 3), &some(29, 4));
}

#[test]
fn constants_decide_every_branch() {
    for condition in Condition::ALL {
        for (x, y) in (0..64).flat_map(|x| (0..64).map(move |y| (x, y))) {
            let (a, b) = (Scalar::<6>::constant(x), Scalar::<6>::constant(y));
            let possible = |holds| Scalar::refine(&a, &b, Width::W64, condition, holds).is_some();
            let holds = compare(condition, x, y, 6);
            assert_eq!((possible(true), possible(false)), (holds, !holds), "{x} {condition:?} {y}");
        }
    }
}

#[test]
fn extension_covers_every_result() {
    for scalar in values::<6>(1) {
        for bits in 1..6 {
            let (zero, sign) = (scalar.zero_extend(bits), scalar.sign_extend(bits));
            for x in members(&scalar) {
                assert!(zero.contains(x & mask(bits)), "{scalar} cut to {bits}: {zero}, {x}");
                assert!(sign.contains(signed(x, bits) as u64 & 63), "{scalar} sign of {bits}: {sign}, {x}");
            }
        }
    }
}

/// A random number near something interesting, and an abstract value that contains it.
fn around(random: &mut fastrand::Rng) -> (u64, Number) {
    let anchor = [0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 63, i64::MAX as u64, u64::from(u32::MAX)];
    let value = match random.u8(..4) {
        0 => random.u64(..),
        1 => random.u64(..) >> random.u32(..64),
        _ => anchor[random.usize(..anchor.len())].wrapping_add(random.u64(..16)).wrapping_sub(8),
    };
    let reach = |random: &mut fastrand::Rng| random.u64(..) >> random.u32(..64);
    let mut known = Number::UNKNOWN;
    if random.bool() {
        let (below, above) = (reach(random), reach(random));
        let whole =
            Bounds { umin: value.saturating_sub(below), umax: value.saturating_add(above), ..known.whole };
        known = known.meet(&Number { whole, ..Number::UNKNOWN }).expect("the value is in both");
    }
    if random.bool() {
        let (below, above) = (reach(random) as i64 & i64::MAX, reach(random) as i64 & i64::MAX);
        let (smin, smax) = ((value as i64).saturating_sub(below), (value as i64).saturating_add(above));
        known = known
            .meet(&Number { whole: Bounds { smin, smax, ..Number::UNKNOWN.whole }, ..Number::UNKNOWN })
            .expect("in both");
    }
    if random.bool() {
        let unknown = random.u64(..) & random.u64(..);
        known = known.meet(&Number { bits: Tnum::new(value, unknown), ..Number::UNKNOWN }).expect("in both");
    }
    if random.bool() {
        let low = i64::from(value as i32);
        let low = Bounds {
            smin: low.saturating_sub(reach(random) as i64 & 0xffff).max(i32::MIN.into()),
            smax: low.saturating_add(reach(random) as i64 & 0xffff).min(i32::MAX.into()),
            ..Number::UNKNOWN.low
        };
        known = known.meet(&Number { low, ..Number::UNKNOWN }).expect("in both");
    }
    if random.u8(..4) == 0 {
        known = Number::constant(value);
    }
    assert!(known.contains(value));
    (value, known)
}

#[test]
fn operations_on_64_bits_agree_with_the_definition_of_the_instructions() {
    let mut random = fastrand::Rng::with_seed(42);
    for _ in 0..60_000 {
        let ((x, a), (y, b)) = (around(&mut random), around(&mut random));
        for width in [Width::W64, Width::W32] {
            let op = AluOp::ALL[random.usize(..AluOp::ALL.len())];
            let (z, c) = (eval::alu(width, op, x, y), a.alu(width, op, &b));
            assert!(c.contains(z), "{a} {op:?} {b} {width:?} = {c}, but {x:#x} and {y:#x} give {z:#x}");
            assert!(a.neg(width).contains(eval::neg(width, x)), "-{a} {width:?}");
            let condition = Condition::ALL[random.usize(..Condition::ALL.len())];
            let holds = eval::compare(width, condition, x, y);
            let kept = Number::refine(&a, &b, width, condition, holds);
            assert!(
                kept.is_some_and(|(a, b)| a.contains(x) && b.contains(y)),
                "{a} {condition:?} {b}: {x:#x}, {y:#x}"
            );
        }
        for size in [Size::H, Size::W, Size::Dw] {
            for order in [SwapOrder::Always, SwapOrder::ToBe, SwapOrder::ToLe] {
                assert!(a.swap(order, size).contains(eval::swap(order, size, x)));
            }
        }
        for size in [Size::B, Size::H, Size::W, Size::Dw] {
            let bits = size.bytes() as u32 * 8;
            assert!(a.zero_extend(bits).contains(eval::zero_extend(size, x)), "{a} {x:#x} {bits}");
            assert!(a.sign_extend(bits).contains(eval::sign_extend(size, x)), "{a} {x:#x} {bits}");
        }
    }
}

#[test]
fn the_sign_extension_idiom_of_compilers_keeps_its_range() {
    let low = Bounds { smin: -3, smax: 20, ..Number::UNKNOWN.low };
    let number = Number { low, ..Number::UNKNOWN }.settle().expect("not empty");
    let by = Number::constant(32);
    let extended = number.alu(Width::W64, AluOp::Lsh, &by).alu(Width::W64, AluOp::Arsh, &by);
    assert_eq!((extended.smin(), extended.smax()), (-3, 20));
}
