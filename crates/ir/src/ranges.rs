//! Ranges of values: the numbers that a value can be, by the verifier's domain. An `i32` counts as zero-extended.

use paceline_isa::{AluOp, Condition, Size, SwapOrder, Width};
use paceline_verifier::domain::Number;

use crate::arena::Side;
use crate::cfg::Cfg;
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::op::Op;
use crate::types::Type;

/// Any number of a type.
pub(crate) fn any(ty: Type) -> Number {
    Number::unsigned(ty.bits())
}

/// The range of an operation's result, by those of its operands; `None` if it has no result.
pub(crate) fn of_op(op: &Op, mut range: impl FnMut(Value) -> Number) -> Option<Number> {
    let bits = |size: Size| 8 * size.bytes() as u32;
    let loaded = |size: Size, signed: bool| match signed {
        true => Number::unsigned(bits(size)).sign_extend(bits(size)),
        false => Number::unsigned(bits(size)),
    };
    Some(match *op {
        Op::Const { value, .. } => Number::constant(value),
        Op::Binary { op, ty, args: [a, b] } => {
            let (a, b) = (range(a), range(b));
            a.alu(ty.width(), op.alu(), &b)
        }
        Op::Neg { ty, arg } => range(arg).neg(ty.width()),
        Op::SignExtend { from, ty, arg } => range(arg).sign_extend(bits(from)).zero_extend(ty.bits()),
        Op::ZeroExtend { arg } => range(arg),
        Op::Truncate { arg } => range(arg).alu(Width::W32, AluOp::Mov, &range(arg)),
        Op::Swap { size, arg, .. } => range(arg).swap(SwapOrder::Always, size),
        Op::Compare { .. } => Number::between(0, 1),
        Op::Load { size, signed, .. } => loaded(size, signed),
        Op::LoadAcquire { size, .. } => loaded(size, false),
        Op::Atomic { width, op, .. } if op.fetches() => any(Type::of(width)),
        // A field of four bytes may be a pointer.
        Op::ContextLoad { size, signed, .. } if size < Size::W => loaded(size, signed),
        _ => any(op.result()?),
    })
}

/// The ranges of a block's parameters, by those of their arguments, which must be known but for those on back edges.
pub(crate) fn of_params(
    function: &Function,
    cfg: &Cfg,
    block: Block,
    mut range: impl FnMut(Value) -> Number,
) -> Vec<Number> {
    let position = cfg.position(block);
    let edges = cfg.edges(block);
    let is_loop = edges.iter().any(|edge| cfg.position(edge.from) >= position);
    let params = function.block(block).params.iter().enumerate();
    let of_param = |(at, param): (usize, &Value)| {
        let whole = any(function.value(*param).ty);
        if is_loop || edges.is_empty() {
            return whole;
        }
        // A branch may have been decided since the graph was made: its target is at another position, or gone.
        let targets = edges.iter().flat_map(|edge| function.block(edge.from).terminator.targets());
        let args =
            targets.filter(|target| target.block == block).filter_map(|target| target.args.get(at).copied());
        args.map(&mut range).reduce(|a, b| a.join(&b)).unwrap_or(whole)
    };
    params.map(of_param).collect()
}

/// Ranges of all values that reached blocks define, whatever branches were taken.
pub(crate) struct Ranges {
    ranges: Side<Value, Option<Number>>,
}

impl Ranges {
    pub(crate) fn of(function: &Function, cfg: &Cfg) -> Self {
        let mut ranges = Self { ranges: Side::default() };
        for &block in cfg.order() {
            let params = of_params(function, cfg, block, |value| ranges.get(function, value));
            for (&param, range) in function.block(block).params.iter().zip(params) {
                ranges.ranges[param] = Some(range);
            }
            for &inst in &function.block(block).insts {
                let data = function.inst(inst);
                let range = of_op(&data.op, |value| ranges.get(function, value));
                if let Some(result) = data.result {
                    ranges.ranges[result] = range;
                }
            }
        }
        ranges
    }

    /// An empty table, for those who fill it on their way.
    pub(crate) fn unknown() -> Self {
        Self { ranges: Side::default() }
    }

    pub(crate) fn set(&mut self, value: Value, range: Number) {
        self.ranges[value] = Some(range);
    }

    pub(crate) fn get(&self, function: &Function, value: Value) -> Number {
        self.ranges[value].unwrap_or_else(|| any(function.value(value).ty))
    }
}

/// Whether a condition holds or not, if the ranges of its operands say so.
pub(crate) fn decide(condition: Condition, ty: Type, a: &Number, b: &Number) -> Option<bool> {
    let may = |holds| Number::refine(a, b, ty.width(), condition, holds).is_some();
    match (may(true), may(false)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
