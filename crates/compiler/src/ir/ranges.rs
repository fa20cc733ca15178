//! Ranges of values: the numbers that a value can be, by the verifier's domain. An `i32` counts as zero-extended.

use std::borrow::Borrow;

use paceline_isa::{AluOp, Condition, Size, SwapOrder, Width, eval};
use paceline_verifier::domain::Number;

use crate::ir::arena::Side;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, Value};
use crate::ir::function::Function;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

/// Any number of a type.
pub(crate) fn any(ty: Type) -> Number {
    Number::unsigned(ty.bits())
}

/// Whether nothing can be known of a result, because nothing is of the operands.
fn is_unknown(op: BinaryOp, ty: Type, a: &Number, b: &Number) -> bool {
    let any = any(ty);
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor => *a == any || *b == any,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Mul => *a == any && *b == any,
        _ => false,
    }
}

/// The range of arithmetic with two operands; `None` if nothing is known of it.
fn of_binary(op: BinaryOp, ty: Type, a: &Number, b: &Number) -> Option<Number> {
    if is_unknown(op, ty, a, b) {
        return None;
    }
    if let Some(b) = b.as_constant() {
        // What these operations make of any number takes less than their rules.
        if let Some(a) = a.as_constant() {
            return Some(Number::constant(op.eval(ty, a, b)));
        }
        let is_any = || *a == any(ty);
        match op {
            BinaryOp::Lshr if b < ty.bits().into() && is_any() => {
                return Some(Number::unsigned(ty.bits() - b as u32));
            }
            BinaryOp::And if b != 0 && b.wrapping_add(1).is_power_of_two() && is_any() => {
                return Some(Number::unsigned(b.trailing_ones().min(ty.bits())));
            }
            _ => {}
        }
    }
    Some(match (op.alu(), op) {
        (Some(alu), _) => a.alu(ty.width(), alu, b),
        // The two shifts that it is.
        (None, BinaryOp::Rotl) => b.as_constant().map_or(any(ty), |count| {
            let [left, right] =
                [count, count.wrapping_neg()].map(|count| Number::constant(count & u64::from(ty.bits() - 1)));
            let [left, right] =
                [(AluOp::Lsh, left), (AluOp::Rsh, right)].map(|(op, by)| a.alu(ty.width(), op, &by));
            left.alu(ty.width(), AluOp::Or, &right)
        }),
        (None, _) => Number::between(op.eval(ty, a.umin(), b.umin()), op.eval(ty, a.umax(), b.umax())),
    })
}

/// The range of an operation's result, by those of its operands; `None` if it has no result, or nothing is known of it.
pub(crate) fn of_op<R: Borrow<Number>>(op: &Op, mut range: impl FnMut(Value) -> R) -> Option<Number> {
    let bits = |size: Size| 8 * size.bytes() as u32;
    let loaded = |size: Size, signed: bool| match (size, signed) {
        (Size::Dw, _) => None,
        (_, true) => Some(Number::unsigned(bits(size)).sign_extend(bits(size))),
        (_, false) => Some(Number::unsigned(bits(size))),
    };
    match *op {
        Op::Const { value, .. } => Some(Number::constant(value)),
        Op::Binary { op, ty, args: [a, b] } => of_binary(op, ty, range(a).borrow(), range(b).borrow()),
        Op::Neg { ty, arg } => Some(range(arg).borrow().neg(ty.width())),
        Op::SignExtend { from, ty, arg } => {
            Some(range(arg).borrow().sign_extend(bits(from)).zero_extend(ty.bits()))
        }
        Op::ZeroExtend { arg } => Some(*range(arg).borrow()),
        Op::Truncate { arg } => {
            let (arg, any) = (range(arg), any(Type::I64));
            (*arg.borrow() != any).then(|| arg.borrow().zero_extend(32))
        }
        Op::Swap { size, arg, .. } => Some(range(arg).borrow().swap(SwapOrder::Always, size)),
        Op::Compare { .. } => Some(Number::unsigned(1)),
        Op::Load { size, signed, .. } => loaded(size, signed),
        Op::LoadAcquire { size, .. } => loaded(size, false),
        Op::Atomic { width: Width::W32, op, .. } if op.fetches() => Some(any(Type::I32)),
        // A field of four bytes may be a pointer.
        Op::ContextLoad { size, signed, .. } if size < Size::W => loaded(size, signed),
        _ => None,
    }
}

/// Ranges of all values that reached blocks define, whatever branches were taken.
pub(crate) struct Ranges {
    /// By value: one more than the position of its range, or 0.
    places: Side<Value, u32>,
    ranges: Vec<Number>,
}

impl Ranges {
    pub(crate) fn of(function: &Function, cfg: &Cfg) -> Self {
        let mut ranges = Self::unknown(function);
        for &block in cfg.order() {
            ranges.of_params(function, cfg, block);
            for &inst in &function.block(block).insts {
                let data = function.inst(inst);
                let range = of_op(&data.op, |value| ranges.get(function, value));
                if let (Some(result), Some(range)) = (data.result, range) {
                    ranges.set(result, range);
                }
            }
        }
        ranges
    }

    /// Sets the ranges of a block's parameters by those of their arguments, which must be known but for those on back edges: parameters
    /// with such have any number.
    pub(crate) fn of_params(&mut self, function: &Function, cfg: &Cfg, block: Block) {
        let params = &function.block(block).params;
        if params.is_empty() {
            return;
        }
        let (position, edges) = (cfg.position(block), cfg.edges(block));
        if edges.iter().any(|edge| cfg.position(edge.from) >= position) {
            return;
        }
        for (at, &param) in params.iter().enumerate() {
            // A branch may have been decided since the graph was made: its target is at another position, or gone.
            let targets = edges.iter().flat_map(|edge| function.block(edge.from).terminator.targets());
            let mut args = targets.filter(|target| target.block == block).map(|target| target.args.get(at));
            // None as soon as nothing is known of one of them.
            let first = args.next().flatten().and_then(|arg| self.known(*arg).copied());
            let joined =
                first.and_then(|first| args.try_fold(first, |all, arg| Some(all.join(self.known(*arg?)?))));
            if let Some(range) = joined {
                self.set(param, range);
            }
        }
    }

    /// An empty table, for those who fill it on their way.
    pub(crate) fn unknown(function: &Function) -> Self {
        let count = function.value_count() + function.value_count() / 4;
        Self { places: Side::sized(count), ranges: Vec::with_capacity(count) }
    }

    pub(crate) fn set(&mut self, value: Value, range: Number) {
        let place = &mut self.places[value];
        match self.ranges.get_mut((*place as usize).wrapping_sub(1)) {
            Some(known) => *known = range,
            None => {
                self.ranges.push(range);
                *place = self.ranges.len() as u32;
            }
        }
    }

    /// The range of a value, if one was computed.
    pub(crate) fn known(&self, value: Value) -> Option<&Number> {
        self.ranges.get((self.places[value] as usize).wrapping_sub(1))
    }

    pub(crate) fn get(&self, function: &Function, value: Value) -> &Number {
        const ANY: [Number; 2] = [Number::unsigned(32), Number::unsigned(64)];
        // default: a value of which nothing is known has any number of its type.
        self.known(value).unwrap_or(&ANY[function.value(value).ty as usize])
    }
}

/// Whether some of the numbers at the bounds make a condition hold, and others not: a question that takes less than the ranges with
/// the condition and without.
fn may_be_either(condition: Condition, ty: Type, a: &Number, b: &Number) -> bool {
    let is_signed = matches!(condition, Condition::SGt | Condition::SGe | Condition::SLt | Condition::SLe);
    let bounds = |number: &Number| match (is_signed, ty) {
        (true, Type::I64) => [number.smin().cast_unsigned(), number.smax().cast_unsigned()],
        (true, Type::I32) => [number.low().smin, number.low().smax].map(|low| u64::from(low as u32)),
        (false, _) => [number.umin(), number.umax()],
    };
    let ([a_min, a_max], [b_min, b_max]) = (bounds(a), bounds(b));
    let (mut holds, mut fails) = (false, false);
    // An equal pair, and the outermost ones.
    for (x, y) in [(a_min, b_max), (a_max, b_min), (b_min, b_min), (a_min, a_min), (a_max, b_max)] {
        if a.contains(x) && b.contains(y) {
            match eval::compare(ty.width(), condition, x, y) {
                true => holds = true,
                false => fails = true,
            }
            if holds && fails {
                return true;
            }
        }
    }
    false
}

/// Whether a condition holds or not, if the ranges of its operands say so.
pub(crate) fn decide(condition: Condition, ty: Type, a: &Number, b: &Number) -> Option<bool> {
    if may_be_either(condition, ty, a, b) {
        return None;
    }
    let may = |holds| Number::refine(a, b, ty.width(), condition, holds).is_some();
    match (may(true), may(false)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::op::CONDITIONS;

    fn numbers(ty: Type) -> Vec<Number> {
        let bounds = [0, 1, 7, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX];
        let bounds = || bounds.into_iter().filter(|bound| ty.cut(*bound) == *bound);
        let between =
            bounds().flat_map(|a| bounds().filter(move |b| a <= *b).map(move |b| Number::between(a, b)));
        let masked = |number: Number| number.alu(ty.width(), AluOp::And, &Number::constant(0xf0));
        between.flat_map(|number| [number, masked(number)]).chain([any(ty)]).collect()
    }

    #[test]
    fn nothing_is_known_of_results_that_are_not_computed() {
        let mut unknown = 0;
        for ty in [Type::I32, Type::I64] {
            for (a, b) in numbers(ty).iter().flat_map(|a| numbers(ty).into_iter().map(move |b| (*a, b))) {
                for (op, _) in BinaryOp::NAMES {
                    if let Some(alu) = op.alu().filter(|_| is_unknown(op, ty, &a, &b)) {
                        assert_eq!(a.alu(ty.width(), alu, &b), any(ty), "{a} {op:?} {b} {ty:?}");
                        unknown += 1;
                    }
                }
            }
        }
        assert!(unknown > 100, "{unknown}");
    }

    #[test]
    fn short_ways_give_what_the_rules_do() {
        let constants = || [0, 1, 3, 7, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
        for (ty, (op, _)) in
            [Type::I32, Type::I64].into_iter().flat_map(|ty| BinaryOp::NAMES.map(|op| (ty, op)))
        {
            let Some(alu) = op.alu() else { continue };
            for b in constants().into_iter().filter(|b| ty.cut(*b) == *b) {
                let rule = |a: &Number| a.alu(ty.width(), alu, &Number::constant(b));
                let found = |a: &Number| of_binary(op, ty, a, &Number::constant(b));
                assert_eq!(found(&any(ty)).unwrap_or(any(ty)), rule(&any(ty)), "{op:?} {b} {ty:?}");
                for a in constants().into_iter().filter(|a| ty.cut(*a) == *a) {
                    let number = found(&Number::constant(a)).expect("a number").as_constant().expect("one");
                    assert_eq!(number, op.eval(ty, a, b), "{a} {op:?} {b} {ty:?}");
                    assert!(rule(&Number::constant(a)).contains(number), "{a} {op:?} {b} {ty:?}");
                }
            }
        }
    }

    #[test]
    fn what_may_be_either_is_not_decided_by_ranges() {
        let (mut either, mut decided) = (0, 0);
        for ty in [Type::I32, Type::I64] {
            for (a, b) in numbers(ty).iter().flat_map(|a| numbers(ty).into_iter().map(move |b| (*a, b))) {
                for (condition, _) in CONDITIONS {
                    let may = |holds| Number::refine(&a, &b, ty.width(), condition, holds).is_some();
                    if may_be_either(condition, ty, &a, &b) {
                        assert!(may(true) && may(false), "{a} {condition:?} {b} {ty:?}");
                        either += 1;
                    }
                    decided += usize::from(decide(condition, ty, &a, &b).is_some());
                }
            }
        }
        assert!(either > 1000 && decided > 1000, "{either} {decided}");
    }
}
